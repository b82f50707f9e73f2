#include "callbacks/core/loop.h"

#include <fmt/format.h>

#include <cmath>

#include "callbacks/hooks.h"
#include "core/error.h"
#include "core/require.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

void require_count(const char* name, const std::optional<int64_t>& value) {
  detail::require(!value || (*value >= 1 && *value <= Time::kMost),
                  name,
                  fmt::format("in [1, {}]", Time::kMost),
                  value.value_or(0));
}

void require_micro_batch(const LoopOptions& options) {
  const bool is_auto = options.device_train_microbatch_size == kAutoMicroBatch;
  if (!is_auto) {
    require_count("loop.device_train_microbatch_size", options.device_train_microbatch_size);
  }
  if (options.memory_limit && !is_auto) {
    throw UsageError(
        "loop.memory_limit chooses the size of micro-batches: set "
        "loop.device_train_microbatch_size = \"auto\" with it, or remove it");
  }
  detail::require(!options.memory_limit || *options.memory_limit >= 1,
                  "loop.memory_limit",
                  ">= 1",
                  options.memory_limit.value_or(0));
}

void require_frequency(const Time& frequency) {
  const bool is_fraction = frequency.unit() == TimeUnit::Fraction;
  if (frequency.value() < 0.0 || (is_fraction && frequency.value() > 1.0)) {
    throw UsageError(fmt::format(
        "loop.eval_frequency: expected an integer >= 0, a fraction in [0, 1] or a Time like "
        "\"2ep\", got {}",
        frequency.to_string()));
  }
}

void require_eval_steps(const std::optional<Time>& steps) {
  if (!steps) {
    return;
  }
  const bool is_fraction = steps->unit() == TimeUnit::Fraction;
  const bool is_known = is_fraction || steps->unit() == TimeUnit::Update;
  if (!is_known || steps->value() <= 0.0 || (is_fraction && steps->value() > 1.0)) {
    throw UsageError(fmt::format(
        "loop.eval_steps: expected an integer >= 1 or a fraction of the pass in (0, 1], got {}",
        steps->to_string()));
  }
}

/// Tells callbacks of the exception that ends a scope.
void guard(Trainer& trainer, Cleanup& cleanup, const Hook<std::exception_ptr>& hook) {
  cleanup.push([&trainer, &hook](const std::exception_ptr& error) {
    if (error) {
      trainer.call(hook, error);
    }
  });
}

/// The stage whose validation was still due when a checkpoint was saved.
std::optional<int64_t> due_validation(const StateDict& timestamp) {
  const StateValue* is_due = timestamp.find("validation_is_due");
  if (is_due == nullptr || !is_due->as_bool()) {
    return std::nullopt;
  }
  const StateValue* loop_idx = timestamp.find("loop_idx");
  return loop_idx != nullptr ? loop_idx->as_int() : 0;
}

}  // namespace

TrainingLoop::TrainingLoop(const Options& options)
    : options_(options), validation_({options.eval_steps, "validate"}) {
  require_count("loop.max_steps", options.max_steps);
  require_count("loop.num_steps", options.num_steps);
  require_count("loop.num_epochs", options.num_epochs);
  require_count("loop.steps_per_epoch", options.steps_per_epoch);
  require_eval_steps(options.eval_steps);
  require_count("loop.grad_accum_steps", options.grad_accum_steps);
  require_micro_batch(options);
  require_count("loop.train_subset_num_batches", options.train_subset_num_batches);
  require_frequency(options.eval_frequency);
  if (!std::isfinite(options.scale_schedule_ratio) || options.scale_schedule_ratio <= 0.0) {
    throw UsageError(fmt::format("loop.scale_schedule_ratio: expected a number > 0, got {}",
                                 options.scale_schedule_ratio));
  }
  if (options.num_epochs && options.num_steps) {
    throw UsageError("loop: num_epochs and num_steps exclude each other; give one of them");
  }
  const int64_t per_epoch = options.steps_per_epoch.value_or(1);
  if (options.num_epochs.value_or(1) > Time::kMost / per_epoch) {
    throw UsageError(
        fmt::format("loop: num_epochs x steps_per_epoch: expected {} updates or fewer, got {} x {}",
                    Time::kMost,
                    *options.num_epochs,
                    per_epoch));
  }
  if (options.max_duration && (options.max_duration->unit() == TimeUnit::Fraction ||
                               options.max_duration->value() <= 0.0)) {
    throw UsageError(
        fmt::format("loop.max_duration: expected a Time > 0 that is not a fraction, got {}",
                    options.max_duration->to_string()));
  }
}

void TrainingLoop::on_enter_fit(
    Trainer& trainer, Cleanup& cleanup, const DataLoader&, const Loaders&, Loop& loop) {
  if (&loop == this) {
    guard(trainer, cleanup, hooks::on_fit_exception);
  }
}

void TrainingLoop::on_enter_train(
    Trainer& trainer, Cleanup& cleanup, const DataLoader&, Loop& loop, int64_t) {
  if (&loop == this) {
    guard(trainer, cleanup, hooks::on_train_exception);
  }
}

void TrainingLoop::on_save_checkpoint(Trainer& trainer, StateDict& state) {
  state.set("global_step", trainer.state().timestamp.update);
  StateDict time = trainer.state().timestamp.state_dict();
  const std::optional<int64_t>& due = trainer.state().due_validation;
  time.set("validation_is_due", due.has_value());
  if (due) {
    time.set("loop_idx", *due);
  }
  state.set("timestamp", std::move(time));
}

void TrainingLoop::check_checkpoint(Trainer&, const StateDict& state) {
  if (const StateValue* saved = state.find("timestamp")) {
    Timestamp().load(saved->as_dict());
    due_validation(saved->as_dict());
  } else if (const StateValue* step = state.find("global_step")) {
    step->as_int();
  }
}

void TrainingLoop::on_load_checkpoint(Trainer& trainer, const StateDict& state) {
  Timestamp& time = trainer.state().timestamp;
  trainer.state().due_validation.reset();
  if (const StateValue* saved = state.find("timestamp")) {
    time.load(saved->as_dict());
    trainer.state().due_validation = due_validation(saved->as_dict());
  } else if (const StateValue* step = state.find("global_step")) {
    time = {};
    time.update = step->as_int();
  }
}

ValidationLoop::ValidationLoop(const Options& options) : options_(options) {
  require_eval_steps(options.eval_steps);
  if (options.hook.empty()) {
    throw UsageError("loop.hook: expected a name, got \"\"");
  }
}

void ValidationLoop::on_enter_validate(Trainer& trainer,
                                       Cleanup& cleanup,
                                       const DataLoader&,
                                       Loop& loop) {
  if (&loop == this) {
    guard(trainer, cleanup, hooks::on_validate_exception);
  }
}

}  // namespace rondo
