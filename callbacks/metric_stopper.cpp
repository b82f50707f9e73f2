#include "callbacks/metric_stopper.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/error.h"
#include "core/glob.h"
#include "core/require.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

bool prefers_lower(const MetricStopper::Watch& watch) {
  if (watch.direction != "auto") {
    return watch.direction == "min";
  }
  constexpr std::array<const char*, 3> kCosts = {"loss", "error", "perplexity"};
  return std::any_of(kCosts.begin(), kCosts.end(), [&](const char* cost) {
    return watch.metric.find(cost) != std::string::npos;
  });
}

}  // namespace

MetricStopper::MetricStopper(std::string name, Watch watch, const char* reason)
    : name_(std::move(name)),
      watch_(std::move(watch)),
      lower_is_better_(prefers_lower(watch_)),
      reason_(reason) {
  const std::string& direction = watch_.direction;
  const std::string& when = watch_.when;
  detail::require(!watch_.metric.empty(), name_ + ".metric", "a metric's name", "nothing");
  detail::require(direction == "min" || direction == "max" || direction == "auto",
                  name_ + ".direction",
                  R"("min", "max" or "auto")",
                  direction);
  detail::require(when == "validation" || when == "epoch" || when == "update",
                  name_ + ".when",
                  R"("validation", "epoch" or "update")",
                  when);
}

void MetricStopper::on_fit_start(Trainer& trainer, const DataLoader&, const Loaders&, Loop&) {
  stop_when_over(trainer);
}

void MetricStopper::on_train_batch_end(
    Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t) {
  const State& state = trainer.state();
  const bool ends_epoch = state.timestamp.epoch > state.previous.epoch;
  const bool is_due =
      (watch_.when == "update" && trainer.is_log_step()) || (watch_.when == "epoch" && ends_epoch);
  if (state.phase.is_last && is_due) {
    // What the step logs is known after its closures, which come first.
    trainer.defer({}, [this, &trainer](const std::vector<at::Tensor>&) { look_now(trainer); });
  }
}

void MetricStopper::run_validation(Trainer& trainer, std::optional<int64_t>, bool) {
  if (watch_.when == "validation" && trainer.state().plan != nullptr) {
    look_now(trainer);
  }
}

void MetricStopper::look_now(Trainer& trainer) {
  const Metrics& metrics = trainer.state().last_metrics;
  const std::optional<double> value = metrics.number(watch_.metric);
  if (!value) {
    std::vector<std::string> known;
    for (const Metrics::Item& item : metrics.items()) {
      known.push_back(item.first);
    }
    throw UsageError(fmt::format("{}: nothing logged the metric \"{}\" until update {}{}",
                                 name_,
                                 watch_.metric,
                                 trainer.state().global_step(),
                                 suggestion(watch_.metric, known)));
  }
  look(trainer.state().timestamp, *value);
  stop_when_over(trainer);
}

void MetricStopper::stop_when_over(Trainer& trainer) {
  if (is_over()) {
    const std::optional<double> value = trainer.state().last_metrics.number(watch_.metric);
    trainer.log().info(fmt::format("{} ends the run at update {}: {}{}",
                                   name_,
                                   trainer.state().global_step(),
                                   watch_.metric,
                                   value ? fmt::format(" = {}", *value) : " said so before"));
    trainer.request_stop(reason_);
  }
}

bool MetricStopper::is_better(double a, double b) const {
  return lower_is_better_ ? a < b : a > b;
}

}  // namespace rondo
