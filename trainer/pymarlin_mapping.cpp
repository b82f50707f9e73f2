#include "trainer/pymarlin_mapping.h"

#include <fmt/format.h>
#include <torch/cuda.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

namespace rondo::pymarlin {

namespace fs = std::filesystem;

namespace {

constexpr double kFirstScale = 4096.0;  // of the loss, in PyMarlin

class Mapping {
 public:
  template <class Value>
  void put(std::string argument, std::vector<std::string> path, Value value) {
    keys.push_back({std::move(argument),
                    std::move(path),
                    ConfigValue(ConfigValue::Variant(std::move(value)))});
  }

  template <class Value>
  void put_optional(std::string argument, std::vector<std::string> path, Value value) {
    put(std::move(argument), std::move(path), std::move(value));
    keys.back().is_optional = true;
  }

  std::vector<MappedKey> keys;
};

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

void put_lengths(Mapping& mapping, const TrainerArguments& arguments) {
  mapping.put("epochs", {"loop", "num_epochs"}, arguments.epochs);
  mapping.put("epochs", {"loop", "eval_frequency"}, std::string("1ep"));
  if (arguments.max_val_steps_per_epoch) {
    mapping.put(
        "max_val_steps_per_epoch", {"loop", "eval_steps"}, *arguments.max_val_steps_per_epoch);
  }
}

void put_steps(Mapping& mapping, const TrainerArguments& arguments) {
  if (arguments.clip_grads) {
    mapping.put("max_grad_norm", {"precision", "max_gradient_norm"}, arguments.max_grad_norm);
  }
  if (ends_with(arguments.backend, "-amp")) {
    mapping.put("backend", {"precision", "dtype"}, std::string("fp16"));
    mapping.put("backend", {"precision", "initial_loss_scale"}, kFirstScale);
  }
  if (arguments.backend.rfind("ddp", 0) == 0) {
    mapping.put("backend", {"distributed"}, ConfigTable());
  }
  if (!arguments.use_gpu) {
    mapping.put("use_gpu", {"backend", "device"}, std::string("cpu"));
  } else if (torch::cuda::is_available()) {
    mapping.put("use_gpu", {"backend", "device"}, std::string("cuda"));
  }
}

/// The number in "<prefix>_<number>.<ext>"; nothing for another name, such as that of a file with
/// the model alone.
std::optional<int64_t> number_in(const std::string& name, const CheckpointerArguments& saving) {
  const std::string begin = saving.file_prefix + "_";
  const std::string end = "." + saving.file_ext;
  if (name.rfind(begin, 0) != 0 || !ends_with(name, end) ||
      name.size() <= begin.size() + end.size()) {
    return std::nullopt;
  }
  const std::string digits = name.substr(begin.size(), name.size() - begin.size() - end.size());
  int64_t number = 0;
  const char* const last = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), last, number);
  return error == std::errc() && rest == last ? std::optional(number) : std::nullopt;
}

/// The file of the largest number in `load_dir` and the folders in it. Without one it is a path at
/// which there is nothing, whose error says what was looked for.
fs::path newest_in(const CheckpointerArguments& saving) {
  fs::path newest =
      saving.load_dir / fmt::format("{}_<number>.{}", saving.file_prefix, saving.file_ext);
  int64_t largest = -1;
  std::error_code error;
  fs::recursive_directory_iterator entry(saving.load_dir, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    const std::optional<int64_t> number = number_in(entry->path().filename().string(), saving);
    if (number && *number > largest) {
      largest = *number;
      newest = entry->path();
    }
  }
  return newest;
}

void put_saving(Mapping& mapping, const CheckpointerArguments& saving) {
  const auto put = [&](const char* name, const char* key, auto value) {
    mapping.put(std::string("checkpointer_args.") + name, {"checkpoint", key}, std::move(value));
  };
  if (saving.checkpoint) {
    put("period", "steps", fmt::format("{}ep", saving.period));
  } else {
    put("checkpoint", "steps", int64_t{0});
    put("checkpoint", "save_final_checkpoint", false);
  }
  mapping.put_optional(
      "checkpointer_args.save_dir", {"checkpoint", "checkpoint_root"}, saving.save_dir.string());
  put("file_prefix",
      "checkpoint_name",
      fmt::format("{}_{{step}}.{}", saving.file_prefix, saving.file_ext));
  const std::vector<std::string> load_path{"checkpoint", "load", "path"};
  if (!saving.load_filename.empty()) {
    mapping.put("checkpointer_args.load_filename",
                load_path,
                (saving.load_dir / saving.load_filename).string());
  } else if (!saving.load_dir.empty()) {
    mapping.put("checkpointer_args.load_dir", load_path, newest_in(saving).string());
  }
}

void put_logging(Mapping& mapping, const TrainerArguments& arguments) {
  mapping.put("stats_args.log_steps", {"logging", "log_steps"}, arguments.stats_args.log_steps);
  std::string level = arguments.log_level;
  for (char& c : level) {
    c = static_cast<char>(c - 'A' + 'a');
  }
  mapping.put("log_level", {"logging", "log_level"}, level);
  ConfigArray loggers;
  const auto add = [&loggers](const char* name, ConfigValue::Variant value) {
    ConfigTable logger;
    logger.set(name, ConfigValue(std::move(value)));
    loggers.emplace_back(ConfigValue::Variant(std::move(logger)));
  };
  const std::vector<std::string>& writers = arguments.writers;
  if (std::find(writers.begin(), writers.end(), "tensorboard") != writers.end()) {
    const std::filesystem::path& directory = arguments.writer_args.tb_log_dir;
    if (directory == WriterInitArguments().tb_log_dir) {
      add("TensorBoardLogger", true);
    } else {
      ConfigTable keys;
      keys.set("summary_dir", ConfigValue(std::filesystem::absolute(directory).string()));
      add("TensorBoardLogger", keys);
    }
  }
  if (arguments.disable_tqdm) {
    add("ProgressLogger", false);  // which a run has by default
  }
  mapping.put("writers", {"loggers"}, loggers);
}

}  // namespace

std::vector<MappedKey> mapped_keys(const TrainerArguments& arguments) {
  Mapping mapping;
  put_lengths(mapping, arguments);
  put_steps(mapping, arguments);
  put_saving(mapping, arguments.checkpointer_args);
  put_logging(mapping, arguments);
  return std::move(mapping.keys);
}

}  // namespace rondo::pymarlin
