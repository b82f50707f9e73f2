#include "optim/schedules/reduce_lr_on_plateau.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "optim/schedules/plateau.h"

namespace rondo {

namespace {

constexpr int64_t kLeastForSlope = 3;

}  // namespace

ReduceLROnPlateau::ReduceLROnPlateau(const Options& options)
    : Scheduler(options.target),
      options_(options),
      followed_{options.metric, options.direction, options.when} {
  check(options);
}

double ReduceLROnPlateau::value(double /*done*/) const {
  return std::max(
      options_.initial_learning_rate * std::pow(options_.factor, static_cast<double>(reductions_)),
      options_.min_lr);
}

void ReduceLROnPlateau::observe(double value) {
  if (sees_plateau(value)) {
    ++reductions_;
  }
}

bool ReduceLROnPlateau::sees_plateau(double value) {
  if (options_.test == "slope") {
    values_.push_back(value);
    const bool is_full = static_cast<int64_t>(values_.size()) >= options_.patience;
    if (!is_full || !is_plateau(values_)) {
      values_.erase(values_.begin(), values_.begin() + (is_full ? 1 : 0));
      return false;
    }
    values_.clear();
    return true;
  }
  if (is_better(value)) {
    best_ = value;
    bad_ = 0;
  } else {
    ++bad_;
  }
  if (cooldown_ > 0) {
    --cooldown_;
    bad_ = 0;
  }
  if (bad_ <= options_.patience) {
    return false;
  }
  cooldown_ = options_.cooldown;
  bad_ = 0;
  return true;
}

bool ReduceLROnPlateau::is_better(double value) const {
  if (!best_) {
    return !std::isnan(value);
  }
  const bool is_share = options_.threshold_mode == "rel";
  return value < *best_ - options_.threshold * (is_share ? std::abs(*best_) : 1.0);
}

StateDict ReduceLROnPlateau::save_state() const {
  StateDict state = {{"reductions", reductions_}, {"bad", bad_}, {"cooldown", cooldown_}};
  if (best_) {
    state.set("best", *best_);
  }
  if (!values_.empty()) {
    state.set("values", at::tensor(values_, at::kDouble));
  }
  return state;
}

void ReduceLROnPlateau::load_state(const StateDict& state) {
  if (state.empty()) {
    reductions_ = bad_ = cooldown_ = 0;
    best_.reset();
    values_.clear();
    return;
  }
  const int64_t reductions = state.at("reductions").as_int();
  const int64_t bad = state.at("bad").as_int();
  const int64_t cooldown = state.at("cooldown").as_int();
  std::vector<double> values;
  if (const StateValue* saved = state.find("values")) {
    const at::Tensor numbers = saved->as_tensor().to(at::kCPU, at::kDouble).contiguous();
    values.assign(numbers.data_ptr<double>(), numbers.data_ptr<double>() + numbers.numel());
  }
  const StateValue* const saved_best = state.find("best");
  const std::optional<double> best =
      saved_best != nullptr ? std::optional(saved_best->as_double()) : std::nullopt;
  best_ = best;
  reductions_ = reductions;
  bad_ = bad;
  cooldown_ = cooldown;
  values_ = std::move(values);
}

const ScheduleTable<ReduceLROnPlateau::Options>& ReduceLROnPlateau::table() {
  static const auto made =
      ScheduleTable<Options>("ReduceLROnPlateau",
                             "Multiplied by factor when a metric stands still.")
          .number("initial_learning_rate", &Options::initial_learning_rate, "the first value")
          .required()
          .key("metric", &Options::metric, {}, "as it is logged, such as \"val/loss\"")
          .required()
          .word("direction",
                &Options::direction,
                {"auto", "min", "max"},
                "which values are better; auto: what the metric says")
          .word("when",
                &Options::when,
                {"validation", "epoch", "update"},
                "when the metric is looked at; update: on log steps")
          .number("factor", &Options::factor, "factor of a reduction", greater_than(0))
          .key("patience",
               &Options::patience,
               at_least(0),
               "values in a row that may be no better; of the slope test: values that it needs")
          .word("test",
                &Options::test,
                {"threshold", "slope"},
                "compare with the best value, or test whether a line through the values falls")
          .number("threshold",
                  &Options::threshold,
                  "by how much a better value has to be better",
                  at_least(0))
          .word("threshold_mode",
                &Options::threshold_mode,
                {"rel", "abs"},
                "whether threshold is a share of the best value or an amount")
          .key("cooldown",
               &Options::cooldown,
               at_least(0),
               "values after a reduction that count as good")
          .number("min_lr", &Options::min_lr, "least value")
          .rule([](const Options& options) {
            return options.metric.empty() ? "metric: expected a name, got \"\"" : "";
          })
          .rule([](const Options& options) {
            return options.test == "slope" && options.patience < kLeastForSlope
                       ? "patience: the slope test needs 3 values or more"
                       : "";
          })
          .rule([](const Options& options) {
            return options.patience < 0 || options.cooldown < 0
                       ? "patience, cooldown: expected numbers of values >= 0"
                       : "";
          });
  return made;
}

}  // namespace rondo
