#include "callbacks/builtin/threshold_stopper.h"

#include "core/registry.h"

namespace rondo {

ThresholdStopper::ThresholdStopper(const Options& options)
    : MetricStopper("ThresholdStopper",
                    {options.metric, options.direction, options.when},
                    "stopped by ThresholdStopper"),
      threshold_(options.threshold) {}

StateDict ThresholdStopper::save_state() const {
  return newest_ ? StateDict{{"newest", *newest_}} : StateDict{};
}

void ThresholdStopper::load_state(const StateDict& state) {
  newest_ = state.empty() ? std::nullopt : std::optional(state.at("newest").as_double());
}

void register_threshold_stopper(Registry<Callback>& registry) {
  using Options = ThresholdStopper::Options;
  registry.add<ThresholdStopper>("ThresholdStopper", "Ends a run whose metric is good enough.")
      .key("metric", &Options::metric, "as it is logged, such as \"val/accuracy\"")
      .required()
      .key("threshold", &Options::threshold, "ends the run when the metric is better than this")
      .required()
      .key("direction",
           &Options::direction,
           one_of({"auto", "min", "max"}),
           "which values are better; auto: what the metric says")
      .key("when",
           &Options::when,
           one_of({"validation", "epoch", "update"}),
           "when the metric is checked; update: on log steps");
}

}  // namespace rondo
