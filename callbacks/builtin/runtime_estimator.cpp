#include "callbacks/builtin/runtime_estimator.h"

#include "callbacks/builtin/internal/wall_time.h"
#include "callbacks/core/run_plan.h"
#include "core/registry.h"
#include "core/require.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

RuntimeEstimator::RuntimeEstimator(const Options& options)
    : skip_batches_(options.skip_batches),
      unit_seconds_(detail::seconds_in(options.time_unit, "RuntimeEstimator.time_unit")) {
  detail::require(
      options.skip_batches >= 0, "RuntimeEstimator.skip_batches", ">= 0", options.skip_batches);
}

void RuntimeEstimator::on_fit_start(Trainer&, const DataLoader&, const Loaders&, Loop&) {
  batches_ = 0;
  remaining_ = {};
}

void RuntimeEstimator::on_train_batch_end(
    Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t) {
  const State& state = trainer.state();
  ++batches_;
  if (batches_ < skip_batches_ || !state.position.is_last) {
    return;
  }
  remaining_.train(state.plan->elapsed_share(state.timestamp), state.timestamp.total_seconds);
  if (const auto seconds = remaining_.seconds(); seconds && batches_ > skip_batches_) {
    trainer.log_metrics({{"time/remaining_estimate", *seconds / unit_seconds_}});
  }
}

void RuntimeEstimator::on_validate_start(Trainer& trainer,
                                         Model&,
                                         const DataLoader& loader,
                                         Loop&) {
  label_ = trainer.metric_log().scope_of(loader);
  validation_start_ = Clock::now();
}

void RuntimeEstimator::on_validate_end(Trainer&, Model&, Loop&) {
  remaining_.validation(label_,
                        std::chrono::duration<double>(Clock::now() - validation_start_).count());
}

void register_runtime_estimator(Registry<Callback>& registry) {
  using Options = RuntimeEstimator::Options;
  registry.add<RuntimeEstimator>("RuntimeEstimator", "Logs the remaining time of the run.")
      .key("skip_batches",
           &Options::skip_batches,
           at_least(0),
           "batches at the beginning that are not measured")
      .key("time_unit",
           &Options::time_unit,
           one_of({"seconds", "minutes", "hours", "days"}),
           "unit of time/remaining_estimate");
}

}  // namespace rondo
