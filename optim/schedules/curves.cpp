#include "optim/schedules/curves.h"

#include <algorithm>
#include <cmath>

#include "optim/internal/shapes.h"

namespace rondo {

namespace {

using detail::cosine_share;
using detail::progress;

constexpr const char* kEnd = "the value at the end and after it";
constexpr const char* kTotal = "how long the schedule takes to reach its end";

}  // namespace

const ScheduleTable<ConstantFormula>& ConstantFormula::table() {
  using F = ConstantFormula;
  static const auto made = ScheduleTable<F>("ConstantLR", "Always the same value.")
                               .number("learning_rate", &F::learning_rate, "the value")
                               .required()
                               .duration("total_iters",
                                         &F::total_iters,
                                         0,
                                         "how long it lasts in a sequence; absent: forever");
  return made;
}

double LinearFormula::value(double t) const {
  const double done = progress(t, total_iters);
  return done == 1.0 ? end_learning_rate
                     : initial_learning_rate + (end_learning_rate - initial_learning_rate) * done;
}

const ScheduleTable<LinearFormula>& LinearFormula::table() {
  using F = LinearFormula;
  static const auto made =
      ScheduleTable<F>("LinearLR", "A straight line, then its end.")
          .number("initial_learning_rate", &F::initial_learning_rate, kInitialRate)
          .required()
          .number("end_learning_rate", &F::end_learning_rate, kEnd)
          .duration("total_iters", &F::total_iters, 0, kTotal);
  return made;
}

double PolynomialFormula::value(double t) const {
  const double periods = cycle ? std::max(1.0, std::ceil(t / total_iters)) : 1.0;
  return detail::between(initial_learning_rate,
                         end_learning_rate,
                         std::pow(1.0 - progress(t, total_iters * periods), power));
}

const ScheduleTable<PolynomialFormula>& PolynomialFormula::table() {
  using F = PolynomialFormula;
  static const auto made =
      ScheduleTable<F>("PolynomialLR", "A power of what is left, then its end.")
          .number("initial_learning_rate", &F::initial_learning_rate, kInitialRate)
          .required()
          .number("end_learning_rate", &F::end_learning_rate, kEnd)
          .duration("total_iters", &F::total_iters, 1, kTotal)
          .number("power", &F::power, "exponent of the share that is left", greater_than(0))
          .key("cycle", &F::cycle, {}, "whether it rises again at its end, to a longer decay");
  return made;
}

double CosineDecayFormula::value(double t) const {
  return detail::between(
      initial_learning_rate, end_learning_rate, cosine_share(progress(t, total_iters)));
}

const ScheduleTable<CosineDecayFormula>& CosineDecayFormula::table() {
  using F = CosineDecayFormula;
  static const auto made =
      ScheduleTable<F>("CosineDecayLR", "Half a cosine, then its end.")
          .number("initial_learning_rate", &F::initial_learning_rate, kInitialRate)
          .required()
          .number("end_learning_rate", &F::end_learning_rate, kEnd)
          .duration("total_iters", &F::total_iters, 0, kTotal);
  return made;
}

double WarmupStableDecayFormula::value(double t) const {
  if (t < warmup_iters) {
    return initial_learning_rate + (learning_rate - initial_learning_rate) * (t / warmup_iters);
  }
  const double into_decay = t - (total_iters - decay_iters);
  if (into_decay < 0.0) {
    return learning_rate;
  }
  const double done = progress(into_decay, decay_iters);
  double left = 1.0 - done;
  if (decay == "cosine") {
    left = cosine_share(done);
  } else if (decay == "sqrt") {
    left = 1.0 - std::sqrt(done);
  }
  return detail::between(learning_rate, end_learning_rate, left);
}

const ScheduleTable<WarmupStableDecayFormula>& WarmupStableDecayFormula::table() {
  using F = WarmupStableDecayFormula;
  static const auto made =
      ScheduleTable<F>("WarmupStableDecayLR", "A rise, a constant, and a decay at the end.")
          .number("learning_rate", &F::learning_rate, "the value between rise and decay")
          .required()
          .duration("warmup_iters", &F::warmup_iters, 0, "length of the rise")
          .duration("decay_iters", &F::decay_iters, 0, "length of the decay")
          .word("decay", &F::decay, {"linear", "cosine", "sqrt"}, "form of the decay")
          .number("initial_learning_rate", &F::initial_learning_rate, kInitialRate)
          .number("end_learning_rate", &F::end_learning_rate, kEnd)
          .duration("total_iters", &F::total_iters, 0, "how long all three take");
  return made;
}

}  // namespace rondo
