#include "callbacks/core/logging_callback.h"

#include <fmt/format.h>

#include "callbacks/core/artifact_dir_callback.h"
#include "callbacks/core/run_plan.h"
#include "callbacks/writes_on_thread.h"
#include "core/error.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

LogLevel level_of(const std::string& name) {
  if (name == "debug") {
    return LogLevel::Debug;
  }
  if (name == "info") {
    return LogLevel::Info;
  }
  if (name == "warning") {
    return LogLevel::Warning;
  }
  if (name == "error") {
    return LogLevel::Error;
  }
  throw UsageError(fmt::format(
      "logging.log_level: expected \"debug\", \"info\", \"warning\" or \"error\", got \"{}\"",
      name));
}

/// Of a part of a fit: nobody waits before the next save.
void flush_at_end(Trainer& trainer, Cleanup& cleanup) {
  cleanup.push([&trainer](const std::exception_ptr&) {
    trainer.metric_log().flush();
    trainer.log().flush();
  });
}

/// What a logger cannot write is lost with a warning.
void finish_writing(Trainer& trainer) {
  trainer.metric_log().flush();
  for (const CallbackMap::Entry& entry : trainer.callbacks().entries()) {
    try {
      if (auto* const writes = dynamic_cast<WritesOnThread*>(entry.callback.get())) {
        writes->finish_writing();
      }
    } catch (const IoError& error) {
      warn_of_lost_values(trainer.log(), error);
    }
  }
}

void finish_writing_at_end(Trainer& trainer, Cleanup& cleanup) {
  cleanup.push([&trainer](const std::exception_ptr&) {
    finish_writing(trainer);
    if (const std::string lost = lost_entries(trainer.callbacks()); !lost.empty()) {
      trainer.log().warning(fmt::format("not written by the end: {}", lost));
    }
    trainer.log().flush();
  });
}

/// A file gives numbers back as tensors.
MetricValue metric_of(const StateValue& saved) {
  if (const auto* count = std::get_if<int64_t>(&saved.variant())) {
    return *count;
  }
  if (const auto* text = std::get_if<std::string>(&saved.variant())) {
    return *text;
  }
  const bool is_number = !saved.is_tensor() || saved.as_tensor().dim() == 0;
  return is_number ? MetricValue(saved.as_double()) : MetricValue(saved.as_tensor());
}

/// In the files alone: whoever catches the exception tells the user.
void record(const Trainer& trainer, const std::string& failure) {
  trainer.log().debug(failure);
  trainer.log().flush();
}

}  // namespace

void LoggingCallback::check(const LoggingOptions& options) {
  if (options.log_steps.value() < 0.0) {
    throw UsageError(fmt::format(
        "logging.log_steps: expected updates >= 0, a fraction or a Time like \"2ep\", got {}",
        options.log_steps.to_string()));
  }
}

void LoggingCallback::pre_setup(Trainer& trainer) {
  const LoggingOptions& options = trainer.options().logging;
  check(options);
  log_steps_ = options.log_steps;
  trainer.log().set_level(level_of(options.log_level));
  file_ = trainer.state().artifact_dir / "run.log";
  trainer.log().add_file(file_);
  trainer_ = &trainer;
  if (trainer.state().writes()) {
    link_relative(trainer.options().model_dir / "latest_run.log", file_);
  }
}

void LoggingCallback::post_setup(Trainer& trainer) {
  for (const CallbackMap::Entry& entry : trainer.callbacks().entries()) {
    if (auto* const hears = dynamic_cast<HearsMetrics*>(entry.callback.get())) {
      listeners_.push_back(hears);
    }
  }
}

void LoggingCallback::finalize() {
  if (trainer_ != nullptr) {
    trainer_->log().remove_file(file_);
  }
}

void LoggingCallback::on_enter_fit(
    Trainer& trainer, Cleanup& cleanup, const DataLoader&, const Loaders&, Loop&) {
  finish_writing_at_end(trainer, cleanup);
}

void LoggingCallback::on_enter_train(
    Trainer& trainer, Cleanup& cleanup, const DataLoader&, Loop&, int64_t) {
  flush_at_end(trainer, cleanup);
}

void LoggingCallback::on_enter_validate(Trainer& trainer,
                                        Cleanup& cleanup,
                                        const DataLoader&,
                                        Loop&) {
  if (trainer.state().plan != nullptr) {  // within a fit
    flush_at_end(trainer, cleanup);
  } else {
    finish_writing_at_end(trainer, cleanup);
  }
}

void LoggingCallback::on_save_checkpoint(Trainer& trainer, StateDict& state) {
  finish_writing(trainer);
  StateDict metrics;
  for (const Metrics::Item& item : trainer.state().last_metrics.items()) {
    metrics.set(item.first, std::visit([](const auto& v) { return StateValue(v); }, item.second));
  }
  if (!metrics.empty()) {
    state.set("metrics", std::move(metrics));
  }
}

void LoggingCallback::on_load_checkpoint(Trainer& trainer, const StateDict& state) {
  const StateValue* saved = state.find("metrics");
  if (saved == nullptr) {
    return;
  }
  Metrics& metrics = trainer.state().last_metrics;
  metrics = {};
  for (const StateDict::Item& item : saved->as_dict().items()) {
    metrics.set(item.first, metric_of(item.second));
  }
}

void LoggingCallback::on_fit_exception(Trainer& trainer, std::exception_ptr error) {
  record(trainer, fmt::format("fit failed: {}", describe(error)));
}

void LoggingCallback::on_validate_exception(Trainer& trainer, std::exception_ptr error) {
  record(trainer, fmt::format("validation failed: {}", describe(error)));
}

bool LoggingCallback::is_log_update(const Trainer& trainer, const Timestamp& time) const {
  const State& state = trainer.state();
  return state.plan != nullptr &&
         (state.plan->is_over(time) || state.falls_due(log_steps_, state.previous, time));
}

bool LoggingCallback::is_log_batch(const Trainer& trainer) const {
  const DataExecutor& executor = *trainer.state().executor;
  if (const std::optional<bool> was_whole = executor.was_whole()) {
    return *was_whole;  // no batch's values any more, but those of the pass
  }
  const bool counts_batches = log_steps_.unit() == TimeUnit::Update && !log_steps_.is_zero();
  return executor.is_final_iteration() ||
         (counts_batches && (executor.iteration() + 1) % log_steps_.count() == 0);
}

void LoggingCallback::tell_no_logger(const Trainer& trainer) {
  if (!told_no_logger_ && trainer.state().writes()) {  // other ranks have none
    trainer.log().warning("metrics are logged, but the Trainer has no logger that receives them");
    told_no_logger_ = true;
  }
}

}  // namespace rondo
