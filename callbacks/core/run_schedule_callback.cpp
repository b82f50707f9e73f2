#include "callbacks/core/run_schedule_callback.h"

#include <algorithm>

#include "core/error.h"
#include "trainer/trainer.h"

namespace rondo {

std::optional<int64_t> samples_of_pass(const DataLoader& loader, const LoopOptions& loop) {
  const std::optional<int64_t> samples = loader.samples();
  if (!loop.train_subset_num_batches) {
    return samples;
  }
  const int64_t most = *loop.train_subset_num_batches * loader.options().batch_size;
  return std::min(samples.value_or(most), most);
}

std::optional<int64_t> updates_of_pass(const DataLoader& loader,
                                       const LoopOptions& loop,
                                       const LoaderPosition& from,
                                       uint64_t run_seed) {
  std::optional<int64_t> batches = loader.size(from, run_seed);
  if (loop.train_subset_num_batches) {
    const int64_t batch_size = loader.options().batch_size;
    const int64_t done = (from.sample + batch_size - 1) / batch_size;
    const int64_t left = std::max<int64_t>(*loop.train_subset_num_batches - done, 0);
    batches = std::min(batches.value_or(left), left);
  }
  if (!batches) {
    return std::nullopt;
  }
  const int64_t group_size = loop.grad_accum_steps;
  return *batches / group_size + (*batches % group_size == 0 ? 0 : 1);
}

void RunScheduleCallback::build(Trainer& trainer,
                                const DataLoader& train,
                                const LoopOptions& options) {
  const Timestamp& start = trainer.state().timestamp;
  const std::optional<int64_t> per_epoch = updates_of_pass(train, options);
  plan_ = make_plan(options, start, per_epoch);
  if (per_epoch && plan_->length().updates_per_epoch == per_epoch) {
    const LoaderPosition from{start.epoch, start.sample_in_epoch};
    plan_->set_left_of_epoch(start, *updates_of_pass(train, options, from, trainer.state().seed));
  }
  trainer.state().plan = plan_.get();
}

const RunPlan& RunScheduleCallback::plan() const {
  if (!plan_) {
    throw UsageError("there is a run schedule only while a fit runs");
  }
  return *plan_;
}

void RunScheduleCallback::on_enter_fit(
    Trainer& trainer, Cleanup& cleanup, const DataLoader&, const Loaders&, Loop&) {
  cleanup.push([this, &trainer](const std::exception_ptr&) {
    trainer.state().plan = nullptr;
    plan_.reset();
  });
}

std::unique_ptr<RunPlan> RunScheduleCallback::make_plan(
    const LoopOptions& options,
    const Timestamp& start,
    std::optional<int64_t> updates_per_epoch) const {
  return std::make_unique<RunPlan>(options, start, updates_per_epoch);
}

}  // namespace rondo
