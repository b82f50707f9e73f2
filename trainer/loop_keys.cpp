#include "trainer/slot_keys.h"

#include <fmt/format.h>

#include <optional>
#include <string>

#include "core/bytes_named.h"

namespace rondo {

namespace {

/// A Time that is a number of batches or a share of a pass.
struct EvalStepsOption {
  static std::string name() {
    return "an integer >= 1 (batches) or a fraction of the pass in (0, 1]";
  }

  static std::optional<std::optional<Time>> read(const ConfigValue& value, FaultSink& faults) {
    const std::optional<Time> steps = detail::read_time(value, faults);
    if (!steps) {
      return std::nullopt;
    }
    const bool is_share = steps->unit() == TimeUnit::Fraction;
    const bool fits = (is_share && steps->value() <= 1.0) || steps->unit() == TimeUnit::Update;
    if (!fits || steps->value() <= 0.0) {
      return detail::mismatch(value, name(), faults);
    }
    return steps;
  }

  static ConfigValue write(const std::optional<Time>& steps) {
    return OptionType<std::optional<Time>>::write(steps);
  }
};

/// "auto", which is kAutoMicroBatch in the options, or a number of samples.
struct MicroBatchOption {
  static std::string name() {
    return fmt::format("\"auto\" or an integer from 1 to {}", Time::kMost);
  }

  static std::optional<std::optional<int64_t>> read(const ConfigValue& value, FaultSink& faults) {
    if (const std::string* word = value.get_if<std::string>(); word != nullptr && *word == "auto") {
      return std::optional(kAutoMicroBatch);
    }
    if (const int64_t* samples = value.get_if<int64_t>();
        samples != nullptr && *samples >= 1 && *samples <= Time::kMost) {
      return std::optional(*samples);
    }
    return detail::mismatch(value, name(), faults);
  }

  static ConfigValue write(const std::optional<int64_t>& samples) {
    return samples == kAutoMicroBatch ? ConfigValue("auto")
                                      : OptionType<std::optional<int64_t>>::write(samples);
  }
};

/// A number of bytes, or a text such as "8GiB".
struct BytesOption {
  static std::string name() { return "a size such as \"8GiB\" or \"500MB\", or bytes"; }

  static std::optional<std::optional<int64_t>> read(const ConfigValue& value, FaultSink& faults) {
    const std::string* const text = value.get_if<std::string>();
    const int64_t* const number = value.get_if<int64_t>();
    const std::optional<int64_t> bytes = text != nullptr     ? bytes_named(*text)
                                         : number != nullptr ? std::optional(*number)
                                                             : std::nullopt;
    if (!bytes || *bytes < 1) {
      return detail::mismatch(value, name(), faults);
    }
    return bytes;
  }

  static ConfigValue write(const std::optional<int64_t>& bytes) {
    return OptionType<std::optional<int64_t>>::write(bytes);
  }
};

}  // namespace

KeyTable<LoopOptions> loop_keys() {
  const OptionCheck count = between(1, static_cast<double>(Time::kMost));
  KeyTable<LoopOptions> keys;
  keys.key("max_steps",
           &LoopOptions::max_steps,
           count,
           "updates of the run in all, those before a resume included")
      .key("num_steps",
           &LoopOptions::num_steps,
           count,
           "updates to train from here on; not for runs that resume")
      .key("num_epochs", &LoopOptions::num_epochs, count, "passes over the training data")
      .key("max_duration",
           &LoopOptions::max_duration,
           "length of the run in any unit, such as \"2e6tok\" or \"1h30m\"")
      .key("steps_per_epoch",
           &LoopOptions::steps_per_epoch,
           count,
           "updates that count as a pass for num_epochs")
      .key("eval_frequency",
           &LoopOptions::eval_frequency,
           at_least(0),
           "how far apart validations are, a fraction being one of the run; 0: never")
      .key_of("eval_steps",
              &LoopOptions::eval_steps,
              EvalStepsOption{},
              "batches of a validation, or a share of its pass; absent: a whole pass")
      .key("grad_accum_steps",
           &LoopOptions::grad_accum_steps,
           count,
           "batches whose gradients make up an update")
      .key_of("device_train_microbatch_size",
              &LoopOptions::device_train_microbatch_size,
              MicroBatchOption{},
              "samples of the pieces that a batch is cut into, or \"auto\": as many as fit into "
              "memory; absent: a step sees a batch")
      .key_of("memory_limit",
              &LoopOptions::memory_limit,
              BytesOption{},
              "memory of the process, such as \"8GiB\", that "
              "device_train_microbatch_size = \"auto\" stays within on a CPU; absent: all it gets")
      .key("accumulate_on_tokens",
           &LoopOptions::accumulate_on_tokens,
           "weight the batches of an update by tokens, not by samples")
      .key("train_subset_num_batches",
           &LoopOptions::train_subset_num_batches,
           count,
           "batches after which a pass over the training data ends; absent: all")
      .key("scale_schedule_ratio",
           &LoopOptions::scale_schedule_ratio,
           greater_than(0),
           "factor of the run's length and of its schedules' durations, but of warm-ups");
  return keys;
}

}  // namespace rondo
