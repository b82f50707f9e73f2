#include "callbacks/metric_stopper.h"

#include <fmt/format.h>

#include <utility>

#include "core/error.h"
#include "core/glob.h"
#include "core/require.h"
#include "trainer/trainer.h"

namespace rondo {

MetricStopper::MetricStopper(std::string name, Watch watch, const char* reason)
    : name_(std::move(name)),
      direction_(name_, std::move(watch.metric), std::move(watch.direction)),
      when_(std::move(watch.when)),
      reason_(reason) {
  detail::require(when_ == "validation" || when_ == "epoch" || when_ == "update",
                  name_ + ".when",
                  R"("validation", "epoch" or "update")",
                  when_);
}

void MetricStopper::post_setup(Trainer& trainer) {
  direction_.guess(trainer);
}

void MetricStopper::on_fit_start(Trainer& trainer, const DataLoader&, const Loaders& val, Loop&) {
  direction_.resolve(trainer, val);
  stop_when_over(trainer);
}

void MetricStopper::on_train_batch_end(
    Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t) {
  const State& state = trainer.state();
  const bool ends_epoch = state.timestamp.epoch > state.previous.epoch;
  const bool is_due =
      (when_ == "update" && trainer.is_log_step()) || (when_ == "epoch" && ends_epoch);
  if (state.phase.is_last && is_due) {
    // What the step logs is known after its closures, which come first.
    trainer.defer({}, [this, &trainer](const std::vector<at::Tensor>&) { look_now(trainer); });
  }
}

void MetricStopper::run_validation(Trainer& trainer, std::optional<int64_t>, bool) {
  if (when_ == "validation" && trainer.state().plan != nullptr) {
    look_now(trainer);
  }
}

void MetricStopper::look_now(Trainer& trainer) {
  const Metrics& metrics = trainer.state().last_metrics;
  const std::optional<double> value = metrics.number(direction_.metric());
  if (!value) {
    std::vector<std::string> known;
    for (const Metrics::Item& item : metrics.items()) {
      known.push_back(item.first);
    }
    throw UsageError(fmt::format("{}: nothing logged the metric \"{}\" until update {}{}",
                                 name_,
                                 direction_.metric(),
                                 trainer.state().global_step(),
                                 suggestion(direction_.metric(), known)));
  }
  look(trainer.state().timestamp, *value);
  stop_when_over(trainer);
}

void MetricStopper::stop_when_over(Trainer& trainer) {
  if (is_over()) {
    const std::optional<double> value = trainer.state().last_metrics.number(direction_.metric());
    trainer.log().info(fmt::format("{} ends the run at update {}: {}{}",
                                   name_,
                                   trainer.state().global_step(),
                                   direction_.metric(),
                                   value ? fmt::format(" = {}", *value) : " said so before"));
    trainer.request_stop(reason_);
  }
}

}  // namespace rondo
