#include "loops/fit_run.h"

#include <fmt/format.h>

#include <utility>

#include "callbacks/core/precision_callback.h"
#include "callbacks/core/reproducibility_callback.h"
#include "callbacks/core/run_schedule_callback.h"
#include "callbacks/core/validation_callback.h"
#include "callbacks/core/virtual_ranks.h"
#include "core/error.h"
#include "loops/rank_handshake.h"
#include "loops/validate_all.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

/// The run's options with what holds for one fit that begins now.
LoopOptions for_this_fit(LoopOptions options, const FitOptions& fit, const Timestamp& now) {
  options.eval_frequency = fit.eval_frequency.value_or(options.eval_frequency);
  if (!fit.duration) {
    return options;
  }
  const Time& more = *fit.duration;
  if (more.unit() == TimeUnit::Fraction || more.value() <= 0.0) {
    throw UsageError(fmt::format(
        "FitOptions::duration must be an amount > 0 such as \"2ep\" or 100 updates, got {}",
        more.value()));
  }
  options.max_steps.reset();
  options.num_steps.reset();
  options.num_epochs.reset();
  options.max_duration = Time::in(more.unit(), now.get(more.unit()) + more.count());
  return options;
}

/// Where batch_size counts the samples of a virtual rank, the loader whose batches are of all.
DataLoader of_all_ranks(const Trainer& trainer, const DataLoader& train) {
  const auto& distributed = trainer.options().distributed;
  const VirtualRanks* const ranks = ranks_of(trainer);
  const bool is_per_rank = distributed && distributed->batch_size == "per_rank";
  return is_per_rank && ranks != nullptr ? train.in_larger_batches(ranks->count()) : train;
}

/// Updates of the run that loss scaling skipped.
int64_t skipped_updates(const Trainer& trainer) {
  const GradScaler* const scaler = trainer.step_slots().precision->scaler();
  return scaler != nullptr ? scaler->skipped_steps().item<int64_t>() : 0;
}

}  // namespace

FitRun::FitRun(Trainer& trainer,
               DataLoader train,
               Loaders val,
               const LoadFrom& from,
               const FitOptions& options)
    : trainer_(trainer),
      train_(std::move(train)),
      val_(std::move(val)),
      options_(options),
      loop_(dynamic_cast<TrainingLoop*>(&trainer.slot<Loop>())) {
  if (loop_ == nullptr) {
    throw UsageError(
        "this Trainer's loop can validate but not fit: its slot \"loop\" has no TrainingLoop");
  }
  if (trainer.state().plan != nullptr) {
    throw UsageError("this Trainer is already running a fit; finish it first");
  }
  require_distinct_labels(val_);
  guarded([&] { enter(from); });
}

FitRun::~FitRun() {
  if (is_done_) {
    return;
  }
  try {
    finish_step();
  } catch (...) {
    trainer_.log().error(fmt::format("while finishing the last step of a fit: {}",
                                     describe(std::current_exception())));
    return;  // the fit is over, it was left
  }
  if (std::exception_ptr error = leave(nullptr)) {
    trainer_.log().error(fmt::format("while leaving an unfinished fit: {}", describe(error)));
  }
}

void FitRun::enter(const LoadFrom& from) {
  if (options_.reset_time) {
    trainer_.state().timestamp = {};
  }
  trainer_.call(hooks::on_enter_fit, cleanup_, train_, val_, *loop_);
  trainer_.load_checkpoint(from);
  train_ = of_all_ranks(trainer_, train_);  // a checkpoint says how many virtual ranks there are
  trainer_.state().previous = trainer_.state().timestamp;
  make_plan();
  build_validation_data();
  go_back_in_loggers();
  const Timestamp loaded = trainer_.state().timestamp;
  trainer_.call(hooks::on_fit_start, train_, val_, *loop_);
  require_same_start(trainer_, train_);
  note_ended_epoch(loaded);
  const State& state = trainer_.state();
  first_update_ = state.timestamp.update;
  skipped_before_ = skipped_updates(trainer_);
  saves_before_ = state.saves;
  seconds_before_ = state.timestamp.total_seconds;
  was_already_done_ = state.plan->is_over(state.timestamp);
  trainer_.state().has_trained = true;
  if (state.due_validation && state.plan->validates()) {
    start_validation();
  }
}

void FitRun::make_plan() {
  const LoopOptions options = for_this_fit(loop_->options(), options_, trainer_.state().timestamp);
  if (options.eval_frequency.is_zero() &&
      !(val_.empty() && validation_callbacks(trainer_).empty())) {
    trainer_.log().warning(
        "validation data is configured, but loop.eval_frequency is 0: it never runs");
  }
  if (options.num_steps && trainer_.state().timestamp.update > 0) {
    trainer_.log().warning(
        "loop.num_steps counts from the checkpoint: a run that resumes automatically never ends; "
        "use max_steps");
  }
  trainer_.step_slots().run_schedule->build(trainer_, train_, options);
}

// An epoch that ends where the run resumes may have a validation due.
void FitRun::note_ended_epoch(const Timestamp& loaded) {
  State& state = trainer_.state();
  if (state.timestamp.epoch > loaded.epoch) {
    trainer_.call(hooks::on_epoch_end, *state.model, train_, loaded.epoch);
  }
  if (state.timestamp.epoch > loaded.epoch && !state.due_validation &&
      state.plan->ends_stage(loaded, state.timestamp)) {
    state.due_validation = state.plan->loop_idx(loaded);
  }
}

// What cannot be built shall not be found out when the training before its validation is done.
void FitRun::build_validation_data() {
  const State& state = trainer_.state();
  const bool is_needed = state.due_validation || !state.plan->is_over(state.timestamp);
  if (!is_needed || !state.plan->validates()) {
    return;
  }
  for (const DataLoader& loader : val_) {
    batches_of_validation(trainer_, loader, loop_->validation_loop());
  }
}

// A validation that is due was left unfinished: it is run again, and logs at the same update.
void FitRun::go_back_in_loggers() {
  const State& state = trainer_.state();
  const bool validates_again = state.due_validation && state.plan->validates();
  trainer_.metric_log().go_back(
      {state.timestamp.update,
       validates_again ? scopes_of(trainer_, val_) : std::vector<std::string>()});
}

bool FitRun::advance() {
  if (!is_done_) {
    guarded([&] { step(Deadline::max()); });
  }
  return !is_done_;
}

void FitRun::finish_step() {
  if (!is_done_ && is_in_step()) {
    advance();
  }
}

bool FitRun::advance_for(std::chrono::nanoseconds budget) {
  const auto deadline = std::chrono::steady_clock::now() + budget;
  const RngScope rng(trainer_);
  while (!is_done_) {
    guarded([&] { step(deadline); });
    if (std::chrono::steady_clock::now() >= deadline) {
      break;
    }
  }
  return !is_done_;
}

void FitRun::guarded(const std::function<void()>& work) {
  std::exception_ptr error;
  try {
    const RngScope rng(trainer_);
    work();
  } catch (...) {
    error = leave(std::current_exception());
  }
  if (error) {
    std::rethrow_exception(error);
  }
}

void FitRun::step(const Deadline& deadline) {
  if (validation_) {
    if (!validation_->advance()) {
      validation_.reset();
      if (trainer_.stop_reason() == nullptr) {  // else it is done when the run resumes
        trainer_.state().due_validation.reset();
      }
      if (std::exception_ptr error = validation_cleanup_.close(nullptr)) {
        std::rethrow_exception(error);
      }
    }
  } else if (stage_) {
    if (!stage_->advance_until(deadline)) {
      end_stage();
    }
  } else if (trainer_.stops_now() || trainer_.state().plan->is_over(trainer_.state().timestamp)) {
    finish();
  } else {
    start_stage();
  }
}

void FitRun::start_stage() {
  const int64_t loop_idx = trainer_.state().plan->loop_idx(trainer_.state().timestamp);
  stage_ = std::make_unique<TrainStage>(trainer_, train_, *loop_, loop_idx);
  stage_->begin();
}

void FitRun::end_stage() {
  stage_->end();
  stage_.reset();
  if (trainer_.state().due_validation && !trainer_.stops_now()) {
    start_validation();
  }
}

void FitRun::start_validation() {
  Loop& loop = loop_->validation_loop();
  trainer_.call(hooks::on_enter_validate_all, validation_cleanup_, val_, loop, Paths{});
  trainer_.call(hooks::on_before_load_checkpoint,
                static_cast<const std::filesystem::path*>(nullptr));
  const State& state = trainer_.state();
  validation_ = std::make_unique<ValidationRun>(
      trainer_, val_, loop, state.due_validation, state.plan->is_over(state.timestamp));
}

void FitRun::finish() {
  trainer_.call(hooks::on_fit_end, *loop_);
  if (std::exception_ptr error = leave(nullptr)) {
    std::rethrow_exception(error);
  }
}

std::exception_ptr FitRun::leave(std::exception_ptr error) {
  is_done_ = true;
  if (error) {
    trainer_.state().communicator->give_up(describe(error));
  }
  if (stage_) {
    error = stage_->fail(std::move(error));
    stage_.reset();
  }
  if (validation_) {
    error = validation_->fail(std::move(error));
    validation_.reset();
  }
  error = validation_cleanup_.close(std::move(error));
  error = cleanup_.close(std::move(error));
  stop_reason_ = trainer_.stop_reason() != nullptr ? trainer_.stop_reason() : "";
  trainer_.clear_stop();
  seconds_ = watch_.seconds();
  return error;
}

FitResult FitRun::result() const {
  const State& state = trainer_.state();
  FitResult result;
  result.steps = state.timestamp.update;
  result.steps_now = state.timestamp.update - first_update_;
  result.skipped_now = skipped_updates(trainer_) - skipped_before_;
  result.seconds = seconds_;
  const double training = state.timestamp.total_seconds - seconds_before_;
  result.steps_per_s = training > 0.0 ? static_cast<double>(result.steps_now) / training : 0.0;
  result.was_already_done = was_already_done_;
  result.stop_reason = stop_reason_;
  result.saves = {state.saves.written - saves_before_.written,
                  state.saves.failed - saves_before_.failed,
                  state.saves.not_uploaded - saves_before_.not_uploaded,
                  state.saves.pause_s - saves_before_.pause_s};
  result.eager_steps = state.backend->eager_steps();
  result.metrics = state.last_metrics;
  result.artifact_dir = state.artifact_dir;
  result.last_checkpoint = state.last_checkpoint;
  return result;
}

}  // namespace rondo
