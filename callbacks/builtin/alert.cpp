#include "callbacks/builtin/alert.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>
#include <vector>

#include "callbacks/core/run_plan.h"
#include "core/glob.h"
#include "core/registry.h"
#include "core/require.h"
#include "trainer/trainer.h"

namespace rondo {

Alert::Alert(const Options& options)
    : options_(options), rule_(detail::parse_alert_rule(options.when)) {
  detail::require(!options.metric.empty(), "Alert.metric", "a metric's name", "nothing");
  detail::require(options.level == "warn" || options.level == "error",
                  "Alert.level",
                  R"("warn" or "error")",
                  options.level);
  detail::require(options.then == "tell" || options.then == "stop",
                  "Alert.then",
                  R"("tell" or "stop")",
                  options.then);
  if (rule_.kind == detail::AlertRule::Kind::NoImprovement) {
    direction_.emplace("Alert", options.metric, options.direction);
  }
}

void Alert::post_setup(Trainer& trainer) {
  if (direction_) {
    direction_->guess(trainer);
  }
}

void Alert::on_fit_start(Trainer& trainer, const DataLoader&, const Loaders& val, Loop&) {
  if (direction_) {
    direction_->resolve(trainer, val);
  }
}

void Alert::on_validate_end(Trainer& trainer, Model&, Loop&) {
  const std::string scope = trainer.metric_log().scope_path();
  if (trainer.is_log_step() && options_.metric.compare(0, scope.size(), scope) == 0) {
    // After what other callbacks log now.
    trainer.defer({},
                  [this, &trainer](const std::vector<at::Tensor>&) { warn_if_missing(trainer); });
  }
}

// One that was stopped may not have come to it.
void Alert::on_fit_end(Trainer& trainer, Loop&) {
  const State& state = trainer.state();
  if (state.plan == nullptr || state.plan->is_over(state.timestamp)) {
    warn_if_missing(trainer);
  }
}

void Alert::warn_if_missing(const Trainer& trainer) {
  if (std::exchange(is_known_, true)) {
    return;
  }
  std::vector<std::string> logged;
  for (const Metrics::Item& item : trainer.state().last_metrics.items()) {
    if (item.first == options_.metric) {  // before this process
      return;
    }
    logged.push_back(item.first);
  }
  trainer.log().warning(fmt::format("Alert: nothing logs \"{}\", so it never alerts{}",
                                    options_.metric,
                                    did_you_mean(options_.metric, logged)));
}

void Alert::on_metrics(Trainer& trainer, const Metrics& values, int64_t) {
  const std::optional<double> value = values.number(options_.metric);
  if (!value) {
    return;
  }
  is_known_ = true;
  const bool was_raised = is_raised_;
  is_raised_ = is_bad(*value);
  if (!is_raised_ || was_raised) {
    return;
  }
  trainer.alert(options_.level == "error" ? AlertLevel::Error : AlertLevel::Warning,
                fmt::format("{} = {:.6g} ({})", options_.metric, *value, options_.when));
  if (options_.then == "stop") {
    trainer.request_stop("stopped by Alert");
  }
}

bool Alert::is_bad(double value) {
  if (!direction_) {
    return rule_.holds(value);
  }
  if (!best_ || std::isnan(*best_) || direction_->is_better(value, *best_)) {
    best_ = value;
    without_improvement_ = 0;
  } else {
    ++without_improvement_;
  }
  return without_improvement_ >= rule_.patience;
}

StateDict Alert::save_state() const {
  StateDict state{{"is_raised", is_raised_}, {"without_improvement", without_improvement_}};
  if (best_) {
    state.set("best", *best_);
  }
  return state;
}

void Alert::load_state(const StateDict& state) {
  is_raised_ = false;
  without_improvement_ = 0;
  best_.reset();
  if (state.empty()) {
    return;
  }
  is_raised_ = state.at("is_raised").as_bool();
  without_improvement_ = state.at("without_improvement").as_int();
  if (const StateValue* best = state.find("best")) {
    best_ = best->as_double();
  }
}

void register_alert(Registry<Callback>& registry) {
  using Options = Alert::Options;
  registry.add<Alert>("Alert", "Alerts when a metric is out of bounds, once until it is back.")
      .key("metric", &Options::metric, "as it is logged, such as \"val/loss\"")
      .required()
      .key("when",
           &Options::when,
           "\"> 3.0\", also with <, >=, <=; \"not finite\"; \"no improvement for 5\" values")
      .required()
      .key("level", &Options::level, one_of({"warn", "error"}), "how loud")
      .key("then",
           &Options::then,
           one_of({"tell", "stop"}),
           "stop: the run ends after the update, and saves")
      .key("direction",
           &Options::direction,
           one_of({"auto", "min", "max"}),
           "of \"no improvement\": which values are better; auto: what the metric says");
}

}  // namespace rondo
