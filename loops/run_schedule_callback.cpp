#include "loops/run_schedule_callback.h"

#include "core/error.h"
#include "trainer/trainer.h"

namespace rondo {

void RunScheduleCallback::build(Trainer& trainer,
                                const DataLoader& train,
                                const LoopOptions& options) {
  const int64_t group = options.grad_accum_steps;
  std::optional<int64_t> updates = train.size();
  if (updates) {
    updates = *updates / group + (*updates % group == 0 ? 0 : 1);
  }
  plan_ = make_plan(options, trainer.state().timestamp, updates);
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
