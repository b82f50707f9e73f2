#include "loops/train_stage.h"

#include <c10/util/SmallVector.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "backends/scoped.h"
#include "callbacks/core/algorithms_callback.h"
#include "callbacks/core/dataloader_callback.h"
#include "callbacks/core/grad_accum_callback.h"
#include "callbacks/core/precision_callback.h"
#include "callbacks/core/run_plan.h"
#include "callbacks/core/sparsity_callback.h"
#include "callbacks/core/virtual_ranks.h"
#include "callbacks/hooks.h"
#include "core/error.h"
#include "core/out_of_memory.h"
#include "core/stopwatch.h"
#include "distributed/heartbeat.h"
#include "loops/failed_batch.h"
#include "loops/train_step.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

/// The tensors of a batch, without an allocation for up to eight.
using TensorsOfBatch = c10::SmallVector<at::Tensor, 8>;

TensorsOfBatch tensors_of(const Batch& batch) {
  TensorsOfBatch tensors;
  for (const TensorMap::Item& item : batch.items()) {
    tensors.push_back(item.second);
  }
  return tensors;
}

/// True when hooks changed what is in a batch.
bool has_other_tensors(const TensorsOfBatch& before, const Batch& after) {
  return !std::equal(
      before.begin(),
      before.end(),
      after.items().begin(),
      after.items().end(),
      [](const at::Tensor& a, const TensorMap::Item& b) { return a.is_same(b.second); });
}

/// What the step of the current batch is recorded for. Where the batches of its group differ, their
/// number plays no part: the share of each is a tensor.
StepKey key_of(const Trainer& trainer) {
  const State& state = trainer.state();
  const std::string kind = trainer.step_slots().step->kind(state);
  const std::string& name = trainer.step_slots().sparsity->step_name();
  const VirtualRanks* const ranks = ranks_of(trainer);
  StepKey key{(kind.empty() ? name : name + "/" + kind) + (ranks ? ranks->step_name() : "") +
                  trainer.step_slots().algorithms->match(trainer),
              state.position,
              trainer.step_slots().precision->dtype()};
  key.position.size = state.share_of_group ? 0 : key.position.size;
  return key;
}

}  // namespace

TrainStage::TrainStage(Trainer& trainer, const DataLoader& loader, Loop& loop, int64_t loop_idx)
    : trainer_(trainer), loader_(loader), loop_(loop), loop_idx_(loop_idx) {}

TrainStage::~TrainStage() = default;

void TrainStage::begin() {
  running_.emplace(trainer_, loader_, /*is_training=*/true);
  trainer_.call(hooks::on_enter_train, cleanup_, loader_, loop_, loop_idx_);
  trainer_.call(hooks::on_train_start, *trainer_.state().model, loader_, loop_, loop_idx_);
  executor_ = std::make_unique<DataExecutor>(
      *trainer_.state().backend, [this] { return fetch(); }, std::nullopt);
  running_->use(*executor_);
  if (trainer_.slot<GradAccumCallback>().finds_size()) {
    undo_ = std::make_unique<GroupUndo>();
  }
}

std::optional<Batch> TrainStage::fetch() {
  beat();
  GroupedBatch grouped = trainer_.step_slots().dataloader->next_batch();
  trainer_.state().position = grouped.position;
  trainer_.state().share_of_group = grouped.share;
  ends_epoch_ = grouped.ends_epoch;
  counts_ = grouped.counts;
  batches_elsewhere_ = grouped.batches_elsewhere;
  if (VirtualRanks* const ranks = ranks_of(trainer_)) {
    ranks->begin_batch(trainer_, grouped);
  }
  return std::move(grouped.batch);
}

/// The time after the current batch.
Timestamp TrainStage::advanced(Timestamp time) const {
  time.advance_batch(counts_);
  time.batch += batches_elsewhere_;
  time.batch_in_epoch += batches_elsewhere_;
  if (ends_epoch_) {
    time.advance_epoch();
  }
  return time;
}

// Gives `run` the key of the current batch's step and whether closures of a cadence fall due after
// it.
template <class Run>
const Outputs* TrainStage::run_step(const Run& run) {
  const State& state = trainer_.state();
  const StepKey key = key_of(trainer_);
  const bool logs = state.position.is_last && trainer_.metric_log().is_log_step_at(state.next);
  // Every batch of a group belongs to the update that the group makes.
  Timestamp group_end = state.next;
  group_end.update = state.timestamp.update + 1;
  const auto falls_due = [&state, logs, group_end](const Cadence& cadence) {
    return cadence.only_log_steps ? logs
                                  : state.falls_due(cadence.every, state.timestamp, group_end);
  };
  trainer_.metric_log().begin_step();
  return run(key, falls_due);
}

bool TrainStage::advance() {
  return advance_until(Deadline::max());
}

bool TrainStage::advance_until(const Deadline& deadline) {
  const Stopwatch watch;
  const bool is_new = !batch_;
  if (is_new) {
    begin_batch();
  }
  const Outputs* outputs = nullptr;
  try {
    outputs = compute(is_new, deadline);
  } catch (...) {
    random_.reset();
    if (is_cut_smaller(std::current_exception())) {
      return true;
    }
    const Timestamp& time = trainer_.state().timestamp;
    rethrow_with_place(trainer_, *batch_, {loader_, {time.epoch, time.sample_in_epoch}});
  }
  seconds_ += watch.seconds();
  if (outputs != nullptr) {
    random_.reset();
  }
  return outputs == nullptr || end_batch(*outputs);
}

/// Called while `error` is handled.
/// \return whether the group of the current batch was undone, to be trained in smaller pieces
bool TrainStage::is_cut_smaller(const std::exception_ptr& error) {
  if (undo_ == nullptr || !is_out_of_memory(error)) {
    return false;
  }
  const int64_t samples = batch_->size();
  if (samples == 1) {
    std::throw_with_nested(
        Error("memory ran out with micro-batches of one sample: take a smaller model, or shorter "
              "samples"));
  }
  batch_.reset();
  trainer_.state().batch = nullptr;
  executor_->forget(batch_idx_ - first_of_group_ + 1);
  undo_->undo(trainer_);
  trainer_.state().backend->invalidate("micro-batches of another size");
  const int64_t size = trainer_.slot<GradAccumCallback>().shrink(trainer_, samples);
  trainer_.step_slots().dataloader->cut_again(size);
  batch_idx_ = first_of_group_;
  begins_group_ = true;
  begins_again_ = true;
  return true;
}

const Outputs* TrainStage::compute(bool is_new, const Deadline& deadline) {
  const auto body = [this](const Batch& staged) {
    ran_body_ = true;
    return train_step(trainer_, staged);
  };
  if (!is_new) {
    return executor_->resume(deadline);
  }
  if (const VirtualRanks* const ranks = ranks_of(trainer_)) {
    random_.emplace(trainer_, ranks->current());
  }
  if (deadline == Deadline::max()) {
    return run_step([&](const StepKey& key, const auto& falls_due) {
      // One reference fits into a std::function without allocating.
      const IsDue is_due = [&falls_due](const Cadence& cadence) { return falls_due(cadence); };
      return &executor_->run(key, *batch_, body, is_due);
    });
  }
  return run_step([&](const StepKey& key, const auto& falls_due) {
    return executor_->start(key, *batch_, body, falls_due, deadline);
  });
}

void TrainStage::begin_batch() {
  State& state = trainer_.state();
  seconds_ = 0.0;
  ran_body_ = false;
  if (state.timestamp.batch_in_epoch == 0 && !begins_again_) {
    trainer_.call(hooks::on_epoch_start, *state.model, loader_, state.timestamp.epoch);
  }
  trainer_.call(hooks::on_dataloader_start);
  batch_ = executor_->next();
  state.batch = &*batch_;
  begins_again_ = false;
  if (begins_group_ && undo_ != nullptr) {
    first_of_group_ = batch_idx_;
    undo_->note(trainer_);
  }
  if (begins_group_) {
    state.earlier = state.previous;
    state.previous = state.timestamp;
  }
  begins_group_ = state.position.is_last;  // the next one
  state.next = advanced(state.timestamp);
  executor_->set_final_iteration(state.position.is_last &&
                                 state.plan->ends_stage(state.previous, state.next));
  const TensorsOfBatch given = tensors_of(*batch_);
  trainer_.call(hooks::on_dataloader_end, *batch_);
  if (has_other_tensors(given, *batch_)) {
    *batch_ = state.backend->stage(std::move(*batch_));
  }
  trainer_.call(hooks::on_train_batch_start, *state.model, *batch_, batch_idx_);
}

bool TrainStage::end_batch(const Outputs& outputs) {
  State& state = trainer_.state();
  VirtualRanks* const ranks = ranks_of(trainer_);
  if (state.position.size > 1 && !ran_body_) {
    const bool are_dropped = state.position.is_last || (ranks != nullptr && ranks->ends_rank());
    for (const auto& optimizer : state.optimizers) {
      optimizer->bind_grads(!are_dropped);
    }
  }
  Batch batch = std::move(*batch_);
  batch_.reset();
  state.batch = nullptr;
  const Scoped<Batch*> batch_scope(state.batch, &batch);
  counts_.seconds = ranks != nullptr ? ranks->agreed_seconds(trainer_, seconds_) : seconds_;
  state.timestamp = advanced(state.timestamp);
  const bool is_over =
      state.position.is_last && state.plan->ends_stage(state.previous, state.timestamp);
  state.due_validation =
      is_over && state.plan->validates() ? std::optional(loop_idx_) : std::nullopt;
  trainer_.call(hooks::on_train_batch_end, *state.model, outputs, batch, batch_idx_);
  if (ends_epoch_) {
    trainer_.call(hooks::on_epoch_end, *state.model, loader_, state.timestamp.epoch - 1);
  }
  executor_->finish();
  ++batch_idx_;
  return !is_over && !(state.position.is_last && trainer_.stops_now());
}

void TrainStage::end() {
  trainer_.call(hooks::on_train_end, *trainer_.state().model, loop_, loop_idx_);
  executor_->finish();
  if (std::exception_ptr error = fail(nullptr)) {
    std::rethrow_exception(error);
  }
}

std::exception_ptr TrainStage::fail(std::exception_ptr error) {
  error = cleanup_.close(std::move(error));
  executor_.reset();
  running_.reset();
  return error;
}

}  // namespace rondo
