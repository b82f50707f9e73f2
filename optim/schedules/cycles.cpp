#include "optim/schedules/cycles.h"

#include <algorithm>
#include <cmath>

#include "optim/internal/shapes.h"

namespace rondo {

namespace {

using detail::cosine_share;
using detail::progress;

/// A part of a cycle: up to `end` the value goes to `to`.
struct Leg {
  double end;
  double to;
};

}  // namespace

double CosineAnnealingFormula::value(double t) const {
  return detail::between(initial_learning_rate, eta_min, cosine_share(t / T_max));
}

const ScheduleTable<CosineAnnealingFormula>& CosineAnnealingFormula::table() {
  using F = CosineAnnealingFormula;
  static const auto made =
      ScheduleTable<F>("CosineAnnealingLR", "A cosine, which falls and rises by turns.")
          .number("initial_learning_rate", &F::initial_learning_rate, "the largest value")
          .required()
          .duration("T_max", &F::T_max, 1, "how long it falls before it rises")
          .number("eta_min", &F::eta_min, "the least value");
  return made;
}

double CosineAnnealingWarmRestartsFormula::value(double t) const {
  double length = T_0;
  double left = t;
  if (T_mult == 1.0) {
    left = std::fmod(t, length);
  }
  while (left >= length) {
    left -= length;
    length = std::max(std::floor(length * T_mult), T_0.amount());
  }
  return detail::between(initial_learning_rate, eta_min, cosine_share(left / length));
}

const ScheduleTable<CosineAnnealingWarmRestartsFormula>&
CosineAnnealingWarmRestartsFormula::table() {
  using F = CosineAnnealingWarmRestartsFormula;
  static const auto made =
      ScheduleTable<F>("CosineAnnealingWarmRestarts", "Half a cosine, again and again.")
          .number("initial_learning_rate", &F::initial_learning_rate, "the value at each restart")
          .required()
          .duration("T_0", &F::T_0, 1, "length of the first cosine")
          .required()
          .number("T_mult", &F::T_mult, "factor from one length to the next", at_least(1))
          .number("eta_min", &F::eta_min, "the value before a restart");
  return made;
}

double CyclicFormula::value(double t) const {
  const double up = step_size_up;
  const double down = step_size_down ? step_size_down->amount() : up;
  const double cycle = std::floor(t / (up + down));
  const double inside = t - cycle * (up + down);
  const double height = inside <= up ? inside / up : (up + down - inside) / down;
  double scale = 1.0;
  if (mode == "triangular2") {
    scale = std::pow(0.5, cycle);
  } else if (mode == "exp_range") {
    scale = std::pow(gamma, t);
  }
  return base_lr + (max_lr - base_lr) * height * scale;
}

const ScheduleTable<CyclicFormula>& CyclicFormula::table() {
  using F = CyclicFormula;
  static const auto made =
      ScheduleTable<F>("CyclicLR", "Up and down in straight lines.")
          .number("base_lr", &F::base_lr, "the least value")
          .required()
          .number("max_lr", &F::max_lr, "the largest value of the first cycle")
          .required()
          .duration("step_size_up", &F::step_size_up, 1, "length of a rise")
          .duration(
              "step_size_down", &F::step_size_down, 1, "length of a fall; absent: as the rise")
          .word("mode",
                &F::mode,
                {"triangular", "triangular2", "exp_range"},
                "whether cycles keep their height, halve it, or multiply it by gamma^t")
          .number("gamma", &F::gamma, "factor of an update in exp_range", greater_than(0));
  return made;
}

double OneCycleFormula::value(double t) const {
  const double last = initial_learning_rate / final_div_factor;
  const double top = pct_start * total_steps - 1.0;
  const double end = total_steps - 1.0;
  Leg legs[] = {{top, max_lr}, {end, last}, {end, last}};
  if (three_phase) {
    legs[1] = {2.0 * top, initial_learning_rate};
  }
  double start = 0.0;
  double from = initial_learning_rate;
  for (const Leg& leg : legs) {
    if (t <= leg.end) {
      const double done = progress(t - start, leg.end - start);
      const double left = anneal_strategy == "cos" ? cosine_share(done) : 1.0 - done;
      return detail::between(from, leg.to, left);
    }
    start = leg.end;
    from = leg.to;
  }
  return last;
}

const ScheduleTable<OneCycleFormula>& OneCycleFormula::table() {
  using F = OneCycleFormula;
  static const auto made =
      ScheduleTable<F>("OneCycleLR", "One rise and one fall, which ends far below the beginning.")
          .number("initial_learning_rate", &F::initial_learning_rate, kInitialRate)
          .required()
          .number("max_lr", &F::max_lr, "the largest value")
          .required()
          .duration("total_steps", &F::total_steps, 1, "length of the cycle")
          .number("pct_start", &F::pct_start, "share of the cycle that rises", between(0, 1))
          .number("final_div_factor",
                  &F::final_div_factor,
                  "how many times the first value is the last one",
                  greater_than(0))
          .key("three_phase", &F::three_phase, {}, "whether it falls first to its beginning")
          .word("anneal_strategy", &F::anneal_strategy, {"cos", "linear"}, "form of rise and fall");
  return made;
}

}  // namespace rondo
