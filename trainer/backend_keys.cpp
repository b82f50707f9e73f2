#include "trainer/slot_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

namespace rondo {

namespace {

/// "first", "off", or every N steps.
struct VerifyOption {
  static std::string name() { return "\"growing\", \"first\", \"off\" or an integer >= 1"; }

  static bool is_word(const std::string& text) {
    return text == "growing" || text == "first" || text == "off";
  }

  static std::optional<std::string> read(const ConfigValue& value, FaultSink& faults) {
    if (const std::string* word = value.get_if<std::string>(); word != nullptr && is_word(*word)) {
      return *word;
    }
    if (const int64_t* steps = value.get_if<int64_t>(); steps != nullptr && *steps >= 1) {
      return std::to_string(*steps);
    }
    return detail::mismatch(value, name(), faults);
  }

  static ConfigValue write(const std::string& value) {
    return is_word(value) ? ConfigValue(value)
                          : ConfigValue(static_cast<int64_t>(std::stoll(value)));
  }
};

/// "auto", which is 0 in the options, or a number of threads.
struct ThreadsOption {
  static constexpr int64_t kMost = 1024;  // beyond, a machine without as many cores never ends

  static std::string name() { return fmt::format("\"auto\" or an integer from 1 to {}", kMost); }

  static std::optional<int> read(const ConfigValue& value, FaultSink& faults) {
    if (const std::string* word = value.get_if<std::string>(); word != nullptr && *word == "auto") {
      return 0;
    }
    if (const int64_t* threads = value.get_if<int64_t>();
        threads != nullptr && *threads >= 1 && *threads <= kMost) {
      return static_cast<int>(*threads);
    }
    return detail::mismatch(value, name(), faults);
  }

  static ConfigValue write(int threads) {
    return threads == 0 ? ConfigValue("auto") : ConfigValue(static_cast<int64_t>(threads));
  }
};

/// "cpu", "cuda", or one of several GPUs by its number.
struct DeviceOption {
  static std::string name() { return "\"cpu\", \"cuda\" or \"cuda:N\""; }

  static bool is_device(const std::string& text) {
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    return text == "cpu" || text == "cuda" ||
           (text.rfind("cuda:", 0) == 0 && text.size() > 5 && text.size() < 8 &&
            std::all_of(text.begin() + 5, text.end(), is_digit));
  }

  static std::optional<std::string> read(const ConfigValue& value, FaultSink& faults) {
    const std::string* const text = value.get_if<std::string>();
    return text != nullptr && is_device(*text) ? std::optional(*text)
                                               : detail::mismatch(value, name(), faults);
  }

  static ConfigValue write(const std::string& value) { return ConfigValue(value); }
};

}  // namespace

KeyTable<BackendOptions> backend_keys() {
  KeyTable<BackendOptions> keys;
  keys.key("mode",
           &BackendOptions::mode,
           one_of({"traced", "eager"}),
           "whether steps are recorded once and replayed (traced), or run as written (eager)")
      .key("executor",
           &BackendOptions::executor,
           one_of({"plan", "interpreter"}),
           "what replays a traced step")
      .key("without_passes",
           &BackendOptions::without_passes,
           "passes over a recorded step to leave out, for debugging")
      .key("exact",
           &BackendOptions::exact,
           "traced steps give the bytes of eager ones; false: faster, rounded differently")
      .key("timed_replays",
           &BackendOptions::timed_replays,
           at_least(0),
           "replays of each traced step to time for its timeline")
      .key_of("device",
              &BackendOptions::device,
              DeviceOption{},
              "device of the tensors; ranks of one host take the GPUs in turn, unless there is a "
              "number")
      .key("deterministic",
           &BackendOptions::deterministic,
           "operators on a GPU give the same bits each time; false: some are faster")
      .key_of("verify",
              &BackendOptions::verify,
              VerifyOption{},
              "which replays are compared with the eager step: number 0, 1, 2, 4, 8 and so on "
              "(growing), the first, none, or every N-th")
      .key("on_refusal",
           &BackendOptions::on_refusal,
           one_of({"eager", "error"}),
           "whether a traced step that cannot be recorded runs as written, or ends the run")
      .key("on_nan",
           &BackendOptions::on_nan,
           one_of({"stop", "explain"}),
           "whether a run whose loss is not finite says which operator made it so")
      .key_of("threads",
              &BackendOptions::threads,
              ThreadsOption{},
              "number of threads of tensor operators")
      .key("environment",
           &BackendOptions::environment,
           one_of({"same", "new"}),
           "what to do when a checkpoint comes from another numeric environment");
  return keys;
}

}  // namespace rondo
