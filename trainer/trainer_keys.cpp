#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "core/bytes_named.h"
#include "core/options.h"
#include "core/registry.h"
#include "trainer/component_options.h"
#include "trainer/distributed_keys.h"
#include "trainer/run_config.h"
#include "trainer/sparsity_keys.h"

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
      .key("device", &BackendOptions::device, one_of({"cpu", "cuda"}), "device of the tensors")
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

/// "dynamic", which is no number in the options, or a number.
struct LossScalingOption {
  static std::string name() { return "\"dynamic\" or a number > 0"; }

  static std::optional<std::optional<double>> read(const ConfigValue& value, FaultSink& faults) {
    const std::string* const word = value.get_if<std::string>();
    if (word != nullptr && *word == "dynamic") {
      return std::optional<double>();
    }
    const double* const number = value.get_if<double>();
    const int64_t* const whole = value.get_if<int64_t>();
    const double factor = number != nullptr  ? *number
                          : whole != nullptr ? static_cast<double>(*whole)
                                             : 0.0;
    if (!(factor > 0.0)) {
      detail::mismatch(value, name(), faults);
      return std::nullopt;
    }
    return std::optional(factor);
  }

  static ConfigValue write(const std::optional<double>& value) {
    return value ? ConfigValue(*value) : ConfigValue("dynamic");
  }
};

KeyTable<PrecisionOptions> precision_keys() {
  KeyTable<PrecisionOptions> keys;
  keys.key("dtype",
           &PrecisionOptions::dtype,
           one_of({"fp32", "fp64", "bf16", "fp16", "bf16_pure"}),
           "number format of forward and backward; bf16_pure: of the weights too")
      .key("on_unsupported",
           &PrecisionOptions::on_unsupported,
           one_of({"fallback", "error", "emulate"}),
           "where the device lacks the format: take the next best with a warning, end the run, or "
           "round to float16 after each operator (fp16 only)")
      .key("float32_operators",
           &PrecisionOptions::float32_operators,
           "globs of operators that are computed in float32, such as \"softmax\"")
      .key_of("loss_scaling_factor",
              &PrecisionOptions::loss_scaling_factor,
              LossScalingOption{},
              "what fp16 multiplies the loss by before backward")
      .key("initial_loss_scale",
           &PrecisionOptions::initial_loss_scale,
           greater_than(0),
           "dynamic loss scale at the start")
      .key("steps_per_increase",
           &PrecisionOptions::steps_per_increase,
           at_least(1),
           "updates without a bad gradient after which the loss scale grows")
      .key("loss_scale_growth",
           &PrecisionOptions::loss_scale_growth,
           greater_than(1),
           "what a growing loss scale is multiplied by")
      .key("loss_scale_backoff",
           &PrecisionOptions::loss_scale_backoff,
           between(0, 1),
           "what the loss scale is multiplied by after a bad gradient")
      .key("min_loss_scale",
           &PrecisionOptions::min_loss_scale,
           greater_than(0),
           "least dynamic loss scale; a bad gradient there ends the run")
      .key("max_loss_scale",
           &PrecisionOptions::max_loss_scale,
           greater_than(0),
           "largest dynamic loss scale; none: that of float32")
      .key("log_loss_scale",
           &PrecisionOptions::log_loss_scale,
           "log loss_scale and skipped_steps; none: where the loss scale is dynamic")
      .key("max_gradient_norm",
           &PrecisionOptions::max_gradient_norm,
           greater_than(0),
           "clip gradients to this joint L2 norm")
      .key("max_gradient_value",
           &PrecisionOptions::max_gradient_value,
           greater_than(0),
           "clamp each element of the gradients to plus and minus this")
      .key("max_gradient_ratio",
           &PrecisionOptions::max_gradient_ratio,
           greater_than(0),
           "clip each unit's gradient to this share of its weights' norm (AGC)")
      .key("clip_by_group",
           &PrecisionOptions::clip_by_group,
           "clip each parameter group by its norm instead of the joint one");
  return keys;
}

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

/// `["old.*", "new.*"]`: two globs.
struct RenameOption {
  static std::string name() { return "a list of pairs like [\"old.*\", \"new.*\"]"; }

  static std::optional<std::vector<std::vector<std::string>>> read(const ConfigValue& value,
                                                                   FaultSink& faults) {
    auto pairs = OptionType<std::vector<std::vector<std::string>>>::read(value, faults);
    for (const auto& pair : pairs.value_or(std::vector<std::vector<std::string>>{})) {
      if (pair.size() != 2) {
        return detail::mismatch(value, name(), faults);
      }
    }
    return pairs;
  }

  static ConfigValue write(const std::vector<std::vector<std::string>>& pairs) {
    return OptionType<std::vector<std::vector<std::string>>>::write(pairs);
  }
};

KeyTable<LoadOptions> load_keys() {
  KeyTable<LoadOptions> keys;
  keys.key("path", &LoadOptions::path, "checkpoint file to begin with; empty: begin afresh")
      .key("key",
           &LoadOptions::key,
           "where the weights are in a file of another program; empty: look for them")
      .key("include", &LoadOptions::include, "globs of the entries to load; none: all")
      .key("ignore", &LoadOptions::ignore, "globs of the entries not to load")
      .key_of(
          "rename",
          &LoadOptions::rename,
          RenameOption{},
          "pairs of globs, old and new, by which parameters and buffers in the file are renamed")
      .key("exclude_algorithms",
           &LoadOptions::exclude_algorithms,
           "algorithms that changed the model of the file and that this run does without")
      .key("weights_only",
           &LoadOptions::weights_only,
           "load the model only; training begins at update 0");
  return keys;
}

KeyTable<CheckpointOptions> checkpoint_keys() {
  KeyTable<CheckpointOptions> keys;
  keys.key("steps",
           &CheckpointOptions::steps,
           at_least(0),
           "how far apart saves are, a fraction being one of the run; 0: none in between")
      .key("save_final_checkpoint",
           &CheckpointOptions::save_final_checkpoint,
           "save the last update of a fit, whatever steps says")
      .key("autoload_last_checkpoint",
           &CheckpointOptions::autoload_last_checkpoint,
           "continue from the newest checkpoint of the run")
      .key("disable_strict_checkpoint_loading",
           &CheckpointOptions::disable_strict_checkpoint_loading,
           "tolerate missing and extra entries of the model")
      .key("save_initial_checkpoint",
           &CheckpointOptions::save_initial_checkpoint,
           "also save before the first batch of the run")
      .key("strict_version",
           &CheckpointOptions::strict_version,
           "refuse files of another major or minor version")
      .key("checkpoint_root",
           &CheckpointOptions::checkpoint_root,
           "directory of the checkpoints; empty: model_dir")
      .key("checkpoint_name",
           &CheckpointOptions::checkpoint_name,
           "name of a checkpoint's file; must contain {step}")
      .key("async",
           &CheckpointOptions::async,
           "write checkpoints in the background while training continues")
      .key("on_error",
           &CheckpointOptions::on_error,
           one_of({"fail", "warn"}),
           "what a save that fails does to the run")
      .key("remote",
           &CheckpointOptions::remote,
           "address that gets a copy of each checkpoint, such as s3://bucket/run; empty: none")
      .key("upload_retries",
           &CheckpointOptions::upload_retries,
           at_least(0),
           "how often a request of an upload is tried again, with longer and longer waits")
      .key("remote_keep",
           &CheckpointOptions::remote_keep,
           one_of({"same", "all"}),
           "same: what is deleted here is deleted there; all: it stays there")
      .key("upload_timeout",
           &CheckpointOptions::upload_timeout,
           at_least(0),
           "seconds that the end of a fit waits for uploads")
      .key("save_weights_only",
           &CheckpointOptions::save_weights_only,
           "save the model alone, which no run resumes from")
      .key("save_ignore_keys",
           &CheckpointOptions::save_ignore_keys,
           "globs of entries that are not saved, such as optimizer")
      .key("require_finite",
           &CheckpointOptions::require_finite,
           "end the run instead of saving weights that are NaN or infinite")
      .table("load",
             &CheckpointOptions::load,
             load_keys(),
             "what a run without checkpoints begins with");
  return keys;
}

KeyTable<LoggingOptions> logging_keys() {
  KeyTable<LoggingOptions> keys;
  keys.key("log_steps",
           &LoggingOptions::log_steps,
           at_least(0),
           "how far apart log steps are, a fraction being one of the run; 0: only the last update")
      .key("log_level",
           &LoggingOptions::log_level,
           one_of({"debug", "info", "warning", "error"}),
           "least severe level of messages that the console shows");
  return keys;
}

KeyTable<AutorestartOptions> autorestart_keys() {
  KeyTable<AutorestartOptions> keys;
  keys.key("max_num_restarts",
           &AutorestartOptions::max_num_restarts,
           at_least(0),
           "starts in a row that may fail without progress; 0: no limit");
  return keys;
}

}  // namespace

KeyTable<TrainerOptions> trainer_keys(const Registries& registries) {
  KeyTable<TrainerOptions> keys;
  keys.key("model_dir", &TrainerOptions::model_dir, "directory of checkpoints and logs").required();
  keys.key("run_name",
           &TrainerOptions::run_name,
           "name of the run; empty: the environment's RUN_NAME, else the last part of model_dir");
  keys.key_of("model",
              &TrainerOptions::model,
              NamedComponentOption<Model>(registries.models),
              "the model to train")
      .required();
  keys.key_of("optimizer",
              &TrainerOptions::optimizer,
              ComponentOption<Optimizer>(registries.optimizers),
              "the optimizer that updates the model")
      .key_of("optimizers",
              &TrainerOptions::optimizers,
              OptimizersOption(registries.optimizers),
              "several optimizers by name, each with params, the globs of its parameters")
      .key_of("step",
              &TrainerOptions::step,
              ComponentOption<TrainStep>(registries.steps),
              "the body of a training step; absent: forward, backward, update")
      .key_of("schedulers",
              &TrainerOptions::schedulers,
              ComponentListOption<Scheduler>(registries.schedulers),
              "schedules of the optimizer's numbers, such as lr")
      .key_of("metrics",
              &TrainerOptions::metrics,
              ComponentListOption<Metric>(registries.metrics),
              "what a validation measures in addition to the model's own metrics")
      .key_of("train_metrics",
              &TrainerOptions::train_metrics,
              ComponentListOption<Metric>(registries.metrics),
              "what is measured of the training batches between two log steps")
      .table("backend", &TrainerOptions::backend, backend_keys(), "how and where steps run");
  keys.add(distributed_key());
  keys.table("precision",
             &TrainerOptions::precision,
             precision_keys(),
             "number format and clipping of gradients");
  keys.add(sparsity_key(registries));
  keys.table(
          "loop", &TrainerOptions::loop, loop_keys(), "length of the run, validation, accumulation")
      .table("checkpoint", &TrainerOptions::checkpoint, checkpoint_keys(), "saving and loading")
      .table("logging", &TrainerOptions::logging, logging_keys(), "messages and log steps")
      .key_of("algorithms",
              &TrainerOptions::algorithms,
              ComponentListOption<Algorithm>(registries.algorithms),
              "changes of how the model is trained, such as MixUp, in their order")
      .key_of("callbacks",
              &TrainerOptions::callbacks,
              ListWithDefaults<Callback>(registries.callbacks, {"LogOptimizerParamGroup"}),
              "callbacks, in the order in which they are called")
      .key_of("loggers",
              &TrainerOptions::loggers,
              ListWithDefaults<Logger>(registries.loggers,
                                       {"ProgressLogger", "JsonlLogger", "RecordLogger"}),
              "loggers that get the metrics")
      .key("seed", &TrainerOptions::seed, at_least(0), "seed of every random number of the run")
      .table("autorestart",
             &TrainerOptions::autorestart,
             autorestart_keys(),
             "limit of restarts without progress")
      .key_of("slots",
              &TrainerOptions::slots,
              SlotsOption(registries.slots),
              "core callbacks of plugins that replace rondo's");
  return keys;
}

}  // namespace rondo
