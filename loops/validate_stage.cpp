#include "loops/validate_stage.h"

#include <ATen/ops/full.h>
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "backends/generator_state.h"
#include "backends/scoped.h"
#include "callbacks/core/algorithms_callback.h"
#include "callbacks/core/dataloader_callback.h"
#include "callbacks/core/evaluator.h"
#include "callbacks/core/metrics_callback.h"
#include "callbacks/core/precision_callback.h"
#include "callbacks/core/reproducibility_callback.h"
#include "callbacks/core/virtual_ranks.h"
#include "callbacks/listeners.h"
#include "core/error.h"
#include "data/grouped_stream.h"
#include "distributed/heartbeat.h"
#include "loops/failed_batch.h"
#include "loops/train_step.h"
#include "loops/validate_all.h"
#include "trainer/trainer.h"

namespace rondo {

std::optional<int64_t> batches_of_validation(Trainer& trainer,
                                             const DataLoader& loader,
                                             const Loop& loop) {
  const SeededGenerator random(trainer.state().seed);
  const std::optional<int64_t> pass = loader.size();
  const Evaluator* const evaluator = evaluator_of(trainer, loader);
  const bool is_own = evaluator != nullptr && evaluator->options().eval_steps;
  const std::optional<Time> wanted = is_own ? evaluator->options().eval_steps : loop.eval_steps();
  if (!wanted) {
    return pass;
  }
  if (pass) {
    return std::min(*pass, counted(*wanted, {pass, pass}).count());
  }
  if (wanted->unit() == TimeUnit::Fraction) {
    throw UsageError(fmt::format(
        "eval_steps: {} of a pass needs a data set whose size is known; loader {} streams: "
        "give a number of batches",
        wanted->value(),
        trainer.metric_log().scope_of(loader)));
  }
  return wanted->count();
}

ValidateStage::ValidateStage(Trainer& trainer, const DataLoader& loader, Loop& loop, LoadFrom from)
    : trainer_(trainer),
      loader_(loader),
      loop_(loop),
      from_(std::move(from)),
      fire_(trainer, loop.validation_hook()) {
  if (trainer.state().executor != nullptr && !trainer.state().is_training) {
    throw UsageError("another validation or prediction is running: finish it first");
  }
}

ValidateStage::~ValidateStage() = default;

void ValidateStage::begin() {
  scope_.emplace(trainer_.metric_log().scopes(), trainer_.metric_log().scope_of(loader_));
  if (!trainer_.callbacks().contains(loop_)) {
    global_loop_.emplace(loop_);
  }
  fire_.allow();
  trainer_.call(hooks::on_enter_validate, cleanup_, loader_, loop_);
  running_.emplace(trainer_, loader_, /*is_training=*/false);
  trainer_.load_checkpoint(from_);
  require_trained(trainer_, from_);
  trainer_.step_slots().dataloader->prepare(trainer_, loader_);
  ranks_ = ranks_of_pass();
  fire_.start(*trainer_.state().model, loader_, loop_);
  std::optional<int64_t> batches = batches_of_validation(trainer_, loader_, loop_);
  batches = batches ? std::optional(own_batches(*batches)) : std::nullopt;
  stream_ = loader_.stream({}, trainer_.state().seed, ranks_);
  executor_ = std::make_unique<DataExecutor>(
      *trainer_.state().backend, [this] { return stream_->next(); }, batches);
  running_->use(*executor_);
}

RankRange ValidateStage::ranks_of_pass() const {
  const VirtualRanks* const ranks = ranks_of(trainer_);
  if (ranks == nullptr) {
    return {};
  }
  if (loop_.validation_hook() != "validate") {
    return finish_ ? ranks->range() : RankRange();
  }
  for (Callback* const callback : trainer_.heard_callbacks()) {
    if (dynamic_cast<const HearsWholePasses*>(callback) != nullptr) {
      return {};
    }
  }
  return trainer_.slot<MetricsCallback>().ranks_of_validation(
      trainer_, trainer_.metric_log().scope_of(loader_));
}

/// Of a pass of so many batches, those of this process.
int64_t ValidateStage::own_batches(int64_t all) const {
  const int64_t rounds = all / ranks_.all;
  const int64_t left = all % ranks_.all - ranks_.first;
  return rounds * ranks_.own + std::clamp<int64_t>(left, 0, ranks_.own);
}

/// Of the current batch in the whole pass.
int64_t ValidateStage::number() const {
  return batch_idx_ / ranks_.own * ranks_.all + ranks_.first + batch_idx_ % ranks_.own;
}

/// Where a process was stopped, none has a result.
void ValidateStage::agree() {
  if (ranks_.all == 1) {
    return;
  }
  at::Tensor is_stopped = at::full({1}, is_whole_ ? 0.0 : 1.0, at::kDouble);
  trainer_.state().communicator->all_reduce(is_stopped);
  const bool is_whole_here = std::exchange(is_whole_, *is_stopped.data_ptr<double>() == 0.0);
  if (is_whole_here && !is_whole_ && trainer_.state().plan == nullptr) {
    trainer_.request_stop("another process was asked to stop");
  }
}

bool ValidateStage::run() {
  std::exception_ptr error;
  try {
    begin();
    while (advance()) {
    }
    end();
  } catch (...) {
    error = fail(std::current_exception());
  }
  if (error) {
    std::rethrow_exception(error);
  }
  return is_whole_;
}

bool ValidateStage::advance() {
  beat();
  std::optional<Batch> batch = executor_->next();
  is_whole_ = !batch;
  if (is_whole_ || trainer_.stops_now()) {
    return false;
  }
  State& state = trainer_.state();
  const Scoped<Batch*> batch_scope(state.batch, &*batch);
  fire_.batch_start(*state.model, *batch, number());
  const Outputs& outputs = run_named_step(*batch);
  state.pass.advance_batch({batch->size(), tokens_in(*batch), 0.0, true});
  fire_.batch_end(*state.model, outputs, *batch, number());
  executor_->finish();
  ++batch_idx_;
  is_whole_ = executor_->is_final_iteration();
  return !is_whole_;
}

const Outputs& ValidateStage::run_named_step(const Batch& batch) {
  try {
    return run_step(batch);
  } catch (...) {
    LoaderPosition first = stream_->position();
    first.sample -= batch.size();
    rethrow_with_place(trainer_, batch, {loader_, first});
  }
}

const Outputs& ValidateStage::run_step(const Batch& batch) {
  // Metrics of its own make another step of it.
  const Evaluator* const evaluator = evaluator_of(trainer_, loader_);
  const std::string own = evaluator != nullptr ? "/" + evaluator->options().loader : "";
  const StepKey key{
      loop_.validation_hook() + own + trainer_.step_slots().algorithms->match(trainer_),
      {},
      trainer_.step_slots().precision->dtype()};
  const bool logs = trainer_.is_log_step();
  const auto is_due = [logs](const Cadence& cadence) { return logs || !cadence.only_log_steps; };
  const auto body = [this](const Batch& staged) {
    return validate_step(trainer_, staged, loop_.validation_hook());
  };
  trainer_.metric_log().begin_step();
  std::optional<RankRandom> random;
  if (ranks_.all > 1) {
    random.emplace(trainer_, number() % ranks_.all);
  }
  return executor_->run(key, batch, body, is_due);
}

void ValidateStage::end() {
  if (finish_) {
    finish_();
  }
  agree();
  executor_->end(is_whole_);
  fire_.end(*trainer_.state().model, loop_);
  executor_->finish();
  tell_what_is_missing();
  warn_of_random_numbers(trainer_.log(), loader_);
  if (std::exception_ptr error = fail(nullptr)) {
    std::rethrow_exception(error);
  }
}

void ValidateStage::tell_what_is_missing() const {
  const std::string pass = fmt::format("the pass over \"{}\" at update {}",
                                       trainer_.metric_log().scope_of(loader_),
                                       trainer_.state().global_step());
  if (!is_whole_) {
    const std::optional<int64_t> all = executor_->num_batches();
    trainer_.log().info(
        fmt::format("{} was stopped after {}{} batches: nothing is logged as its result",
                    pass,
                    batch_idx_,
                    all ? fmt::format(" of {}", *all) : ""));
  } else if (batch_idx_ == 0 && ranks_.first == 0) {
    trainer_.log().warning(
        fmt::format("{} has no result, since it had no batch: {}", pass, why_no_batch(loader_)));
  }
}

std::exception_ptr ValidateStage::fail(std::exception_ptr error) {
  if (error && ranks_.all > 1) {
    trainer_.state().communicator->give_up(describe(error));
  }
  error = cleanup_.close(std::move(error));
  fire_.disallow();
  executor_.reset();
  running_.reset();
  global_loop_.reset();
  scope_.reset();
  return error;
}

}  // namespace rondo
