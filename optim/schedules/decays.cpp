#include "optim/schedules/decays.h"

#include <algorithm>
#include <cmath>

namespace rondo {

double ExponentialFormula::value(double t) const {
  const double exponent = t / total_iters;
  return initial_learning_rate * std::pow(decay_rate, staircase ? std::floor(exponent) : exponent);
}

const ScheduleTable<ExponentialFormula>& ExponentialFormula::table() {
  using F = ExponentialFormula;
  static const auto made =
      ScheduleTable<F>("ExponentialLR", "Multiplied by decay_rate over every total_iters.")
          .number("initial_learning_rate", &F::initial_learning_rate, kInitialRate)
          .required()
          .number("decay_rate", &F::decay_rate, "factor over total_iters", greater_than(0))
          .required()
          .duration("total_iters", &F::total_iters, 1, "how long one factor takes")
          .key("staircase", &F::staircase, {}, "whether the factor comes at once");
  return made;
}

double InverseExponentialTimeDecayFormula::value(double t) const {
  const double alpha = std::pow(t, step_exponent) / total_iters;
  return initial_learning_rate / (1.0 + decay_rate * (staircase ? std::floor(alpha) : alpha));
}

const ScheduleTable<InverseExponentialTimeDecayFormula>&
InverseExponentialTimeDecayFormula::table() {
  using F = InverseExponentialTimeDecayFormula;
  static const auto made =
      ScheduleTable<F>("InverseExponentialTimeDecayLR", "Divided by a number that grows with time.")
          .number("initial_learning_rate", &F::initial_learning_rate, kInitialRate)
          .required()
          .number("decay_rate", &F::decay_rate, "growth of the divisor", at_least(0))
          .required()
          .duration("total_iters", &F::total_iters, 1, "how long the divisor takes to grow so much")
          .number("step_exponent", &F::step_exponent, "exponent of the time", greater_than(0))
          .key("staircase", &F::staircase, {}, "whether the growth comes at once");
  return made;
}

double InverseSquareRootDecayFormula::value(double t) const {
  return initial_learning_rate * scale / std::sqrt(std::max(t, warmup_steps.amount()));
}

const ScheduleTable<InverseSquareRootDecayFormula>& InverseSquareRootDecayFormula::table() {
  using F = InverseSquareRootDecayFormula;
  static const auto made =
      ScheduleTable<F>("InverseSquareRootDecayLR", "Divided by the square root of the time.")
          .number("initial_learning_rate", &F::initial_learning_rate, "a factor")
          .number("scale", &F::scale, "another factor")
          .duration("warmup_steps", &F::warmup_steps, 1, "how long the first value stays");
  return made;
}

double MultiplicativeFormula::value(double t) const {
  return initial_learning_rate * std::pow(coefficient, t);
}

const ScheduleTable<MultiplicativeFormula>& MultiplicativeFormula::table() {
  using F = MultiplicativeFormula;
  static const auto made =
      ScheduleTable<F>("MultiplicativeLR", "Multiplied by a coefficient with every update.")
          .number("initial_learning_rate", &F::initial_learning_rate, kInitialRate)
          .required()
          .number("coefficient", &F::coefficient, "factor of an update", greater_than(0))
          .required();
  return made;
}

}  // namespace rondo
