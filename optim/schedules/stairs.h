#pragma once

#include <optional>
#include <vector>

#include "optim/schedules/formula_scheduler.h"

namespace rondo {

// Schedules in steps. `t` is what is done; names and formulas are those of the Cerebras trainer.

/// `initial * gamma^floor(t/step_size)`.
struct StepFormula {
  double initial_learning_rate = 1e-3;
  Duration step_size = 1;  ///< > 0
  double gamma = 0.1;
  std::optional<Duration> total_iters = {};  ///< none: for ever; a sequence needs it
  SchedulerTarget target = {};

  double value(double t) const;

  double length() const { return total_iters ? total_iters->amount() : kEndless; }

  static const ScheduleTable<StepFormula>& table();
};

/// `initial * gamma^n`, where n milestones are reached.
struct MultiStepFormula {
  double initial_learning_rate = 1e-3;
  std::vector<Duration> milestones = {};  ///< in order
  double gamma = 0.1;
  SchedulerTarget target = {};

  double value(double t) const;

  double length() const { return kEndless; }

  static const ScheduleTable<MultiStepFormula>& table();
};

/// The first of `learning_rates`, and the next one from each milestone on.
struct PiecewiseConstantFormula {
  std::vector<double> learning_rates = {};  ///< one more than milestones
  std::vector<Duration> milestones = {};    ///< in order
  SchedulerTarget target = {};

  double value(double t) const;

  double length() const { return kEndless; }

  static const ScheduleTable<PiecewiseConstantFormula>& table();
};

class StepLR final : public FormulaScheduler<StepFormula> {
 public:
  using FormulaScheduler::FormulaScheduler;
};

class MultiStepLR final : public FormulaScheduler<MultiStepFormula> {
 public:
  using FormulaScheduler::FormulaScheduler;
};

class PiecewiseConstantLR final : public FormulaScheduler<PiecewiseConstantFormula> {
 public:
  using FormulaScheduler::FormulaScheduler;
};

}  // namespace rondo
