#include "optim/schedules/stairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace rondo {

namespace {

/// How many milestones are reached; their order does not matter.
size_t reached(const std::vector<Duration>& milestones, double t) {
  return static_cast<size_t>(std::count_if(
      milestones.begin(), milestones.end(), [t](double milestone) { return t >= milestone; }));
}

}  // namespace

double StepFormula::value(double t) const {
  return initial_learning_rate * std::pow(gamma, std::floor(t / step_size));
}

const ScheduleTable<StepFormula>& StepFormula::table() {
  using F = StepFormula;
  static const auto made =
      ScheduleTable<F>("StepLR", "Multiplied by gamma every step_size.")
          .number("initial_learning_rate", &F::initial_learning_rate, kInitialRate)
          .required()
          .duration("step_size", &F::step_size, 1, "how long a value stays")
          .required()
          .number("gamma", &F::gamma, "factor from one value to the next")
          .duration("total_iters",
                    &F::total_iters,
                    0,
                    "how long it lasts in a sequence; absent: forever");
  return made;
}

double MultiStepFormula::value(double t) const {
  return initial_learning_rate * std::pow(gamma, static_cast<double>(reached(milestones, t)));
}

const ScheduleTable<MultiStepFormula>& MultiStepFormula::table() {
  using F = MultiStepFormula;
  static const auto made =
      ScheduleTable<F>("MultiStepLR", "Multiplied by gamma at each milestone.")
          .number("initial_learning_rate", &F::initial_learning_rate, kInitialRate)
          .required()
          .duration("milestones", &F::milestones, 0, "when it is multiplied")
          .required()
          .number("gamma", &F::gamma, "factor from one value to the next");
  return made;
}

double PiecewiseConstantFormula::value(double t) const {
  return learning_rates[reached(milestones, t)];
}

const ScheduleTable<PiecewiseConstantFormula>& PiecewiseConstantFormula::table() {
  using F = PiecewiseConstantFormula;
  static const auto made =
      ScheduleTable<F>("PiecewiseConstantLR", "A list of values, each up to a milestone.")
          .numbers("learning_rates", &F::learning_rates, "the values; the last one stays")
          .required()
          .duration("milestones", &F::milestones, 0, "when each value but the first begins")
          .required()
          .rule([](const F& options) {
            const size_t rates = options.learning_rates.size();
            const size_t milestones = options.milestones.size();
            return rates == milestones + 1
                       ? ""
                       : fmt::format(
                             "learning_rates: expected {}, one more than milestones, got {}",
                             milestones + 1,
                             rates);
          });
  return made;
}

}  // namespace rondo
