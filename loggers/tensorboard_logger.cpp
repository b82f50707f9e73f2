#include "loggers/tensorboard_logger.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/registry.h"
#include "core/writable_path.h"
#include "loggers/event_file.h"
#include "loggers/held_bytes.h"
#include "loggers/program_graph.h"
#include "loggers/register.h"
#include "record/config_keys.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

/// The tables and keys of a config that shape the training.
constexpr std::string_view kShaping[] = {"init.model",
                                         "init.optimizer",
                                         "init.optimizers",
                                         "init.schedulers",
                                         "init.loop",
                                         "init.precision",
                                         "init.sparsity",
                                         "init.step",
                                         "init.algorithms",
                                         "init.seed",
                                         "fit.train_dataloader"};

/// "init.model.name" lies in "init.model", "init.model_dir" does not.
bool lies_in(std::string_view key, std::string_view table) {
  return key.substr(0, table.size()) == table &&
         (key.size() == table.size() || key[table.size()] == '.');
}

void add_values(EventFile& file, const Metrics& values, int64_t update) {
  std::vector<std::pair<std::string, float>> scalars;
  for (const Metrics::Item& item : values.items()) {
    if (const auto* const tensor = std::get_if<at::Tensor>(&item.second)) {
      file.add_tensor(update, item.first, *tensor);
    } else if (const auto* const text = std::get_if<std::string>(&item.second)) {
      file.add_media(update, {item.first, *text});
    } else if (const auto number = values.number(item.first)) {
      scalars.emplace_back(item.first, static_cast<float>(*number));
    }
  }
  if (!scalars.empty()) {
    file.add_scalars(update, scalars);
  }
}

/// The values of a config that shape the training, by key below `[trainer]`.
std::map<std::string, std::string> hyperparameters_in(const std::string& config) {
  constexpr std::string_view kTrainer = "trainer.";
  std::map<std::string, std::string> values;
  for (const auto& [key, value] : config_keys(config)) {
    const std::string_view below =
        std::string_view(key).substr(std::min(kTrainer.size(), key.size()));
    const bool shapes = std::any_of(std::begin(kShaping),
                                    std::end(kShaping),
                                    [&](std::string_view table) { return lies_in(below, table); });
    if (shapes) {
      values.emplace(below, value);
    }
  }
  return values;
}

}  // namespace

TensorBoardLogger::TensorBoardLogger(const Options& options)
    : FilteredLogger({options.log_steps, options.exclude}), directory_(options.summary_dir) {
  require_event_files();
}

TensorBoardLogger::~TensorBoardLogger() = default;

void TensorBoardLogger::pre_setup(Trainer& trainer) {
  directory_ = trainer.options().model_dir / directory_;
  require_writable_folder(directory_);
  writer_.warn_of_waits(trainer.log(), directory_.string());
}

EventFile& TensorBoardLogger::file() {
  if (!file_) {
    file_ = std::make_unique<EventFile>(directory_);
  }
  return *file_;
}

void TensorBoardLogger::on_fit_start(Trainer& trainer, const DataLoader&, const Loaders&, Loop&) {
  const std::string& config = trainer.options().config_text;
  if (!config.empty() && filter().takes("config")) {
    log_media({"config", "```toml\n" + config + "```\n"}, trainer.state().global_step());
  }
  const std::map<std::string, std::string> values = hyperparameters_in(config);
  has_hyperparameters_ = !values.empty() && filter().takes("hparams");
  if (has_hyperparameters_) {
    write(config.size(),
          [values, run = trainer.state().run_name, update = trainer.state().global_step()](
              EventFile& file) { file.add_hyperparameters(update, run, values); });
  }
}

void TensorBoardLogger::on_fit_end(Trainer& trainer, Loop&) {
  const int64_t update = trainer.state().global_step();
  if (has_hyperparameters_) {
    write(0, [update](EventFile& file) { file.add_end(update); });
  }
  const std::vector<StepReport> steps = trainer.state().backend->reports();
  const auto step = std::find_if(steps.begin(), steps.end(), [](const StepReport& report) {
    return is_of_training(report) && !is_eager(report);
  });
  if (step != steps.end() && !has_graph_ && filter().takes("graph")) {
    has_graph_ = true;
    write(step->program.size(), [program = step->program, update](EventFile& file) {
      file.add_graph(update, graph_of(program));
    });
  }
}

/// Calls `add` on the thread. \param bytes  what it holds
void TensorBoardLogger::write(size_t bytes, std::function<void(EventFile&)> add) {
  has_written_ = true;
  writer_.push(bytes, [this, add = std::move(add)] { add(file()); });
  writer_.rethrow();
}

void TensorBoardLogger::log(const Metrics& values, int64_t update) {
  write(held_bytes(values),
        [values, update](EventFile& file) { add_values(file, values, update); });
}

void TensorBoardLogger::log_media(const Media& media, int64_t update) {
  write(held_bytes(media), [media, update](EventFile& file) { file.add_media(update, media); });
}

void TensorBoardLogger::go_back(const LogPosition& position) {
  writer_.wait();
  const size_t own = file_ ? 1 : 0;
  if (position.update == 0 ? event_files(directory_).size() == own
                           : event_files(directory_).empty()) {
    return;  // nothing to go back from
  }
  file().start_session(position.update, [&](const std::string& tag, bool is_own) {
    const bool is_of_this_run = position.update > 0 || is_own;
    return is_of_this_run && !position.repeats(position.update, tag);
  });
  file_->flush();
}

void TensorBoardLogger::start_flush() {
  if (std::exchange(has_written_, false)) {
    writer_.push(0, [this] { file().flush(); });
  }
}

void TensorBoardLogger::flush() {
  start_flush();
  writer_.rethrow();
}

void TensorBoardLogger::finish_writing() {
  start_flush();
  writer_.wait();
  writer_.rethrow();
}

int64_t TensorBoardLogger::lost() {
  start_flush();
  writer_.wait();
  return file_ ? file_->lost() : 0;
}

void register_tensorboard_logger(Registry<Logger>& registry) {
  add_filter_keys(
      registry
          .add<TensorBoardLogger>(
              "TensorBoardLogger",
              "Writes TensorBoard events: numbers, tensors, texts, histograms, pictures.")
          .key("summary_dir",
               &TensorBoardLogger::Options::summary_dir,
               "directory, relative to model_dir"));
}

}  // namespace rondo
