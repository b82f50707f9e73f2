#include "callbacks/builtin/early_stopper.h"

#include <fmt/format.h>

#include <cmath>

#include "callbacks/core/run_plan.h"
#include "core/registry.h"
#include "core/require.h"
#include "core/timestamp.h"
#include "trainer/trainer.h"

namespace rondo {

EarlyStopper::EarlyStopper(const Options& options)
    : MetricStopper("EarlyStopper",
                    {options.metric, options.direction, options.when},
                    "stopped by EarlyStopper"),
      patience_(options.patience),
      min_delta_(options.min_delta) {
  detail::require(patience_.value() >= 0.0, "EarlyStopper.patience", ">= 0", patience_.to_string());
  detail::require(min_delta_ >= 0.0, "EarlyStopper.min_delta", ">= 0", min_delta_);
}

void EarlyStopper::on_fit_start(Trainer& trainer,
                                const DataLoader& train,
                                const Loaders& val,
                                Loop& loop) {
  if (patience_.unit() == TimeUnit::Fraction) {
    patience_ = counted(patience_, trainer.state().plan->length());
  }
  if (best_ && saved_unit_ && *saved_unit_ != patience_.unit()) {
    trainer.log().warning(fmt::format(
        "EarlyStopper: patience is now {}, which counts in another unit than the checkpoint's: the "
        "best value of {} counts as found at this update",
        patience_.to_string(),
        *best_));
    best_at_ = trainer.state().timestamp.get(patience_.unit());
    age_ = 0;
  }
  saved_unit_.reset();
  MetricStopper::on_fit_start(trainer, train, val, loop);
}

void EarlyStopper::look(const Timestamp& now, double value) {
  const int64_t time = now.get(patience_.unit());
  // A better value lies beyond the best one moved by min_delta its own way.
  const double sign = is_better(0.0, 1.0) ? -1.0 : 1.0;
  const bool ends_nan = best_ && std::isnan(*best_) && !std::isnan(value);
  if (!best_ || ends_nan || is_better(value, *best_ + sign * min_delta_)) {
    best_ = value;
    best_at_ = time;
  }
  age_ = time - best_at_;
}

StateDict EarlyStopper::save_state() const {
  if (!best_) {
    return {};
  }
  return {
      {"best", *best_}, {"best_at", best_at_}, {"age", age_}, {"patience", patience_.to_string()}};
}

void EarlyStopper::load_state(const StateDict& state) {
  if (state.empty()) {
    best_.reset();
    age_ = 0;
    return;
  }
  const double best = state.at("best").as_double();
  const int64_t best_at = state.at("best_at").as_int();
  const StateValue* patience = state.find("patience");  // older files have none
  saved_unit_ =
      patience != nullptr ? std::optional(Time(patience->as_string()).unit()) : std::nullopt;
  age_ = state.at("age").as_int();
  best_at_ = best_at;
  best_ = best;
}

void register_early_stopper(Registry<Callback>& registry) {
  using Options = EarlyStopper::Options;
  registry.add<EarlyStopper>("EarlyStopper", "Ends a run whose metric has stopped improving.")
      .key("metric", &Options::metric, "as it is logged, such as \"val/accuracy\"")
      .required()
      .key("direction",
           &Options::direction,
           one_of({"auto", "min", "max"}),
           "which values are better; auto: what the metric says")
      .key("when",
           &Options::when,
           one_of({"validation", "epoch", "update"}),
           "when the metric is checked; update: on log steps")
      .key("patience",
           &Options::patience,
           at_least(0),
           "ends the run when the best value is older than this")
      .key(
          "min_delta", &Options::min_delta, at_least(0), "an improvement must be larger than this");
}

}  // namespace rondo
