#pragma once

#include "optim/schedules/formula_scheduler.h"

namespace rondo {

// Schedules that decay for ever. `t` is what is done; names and formulas are those of the Cerebras
// trainer. A sequence needs a milestone for where one ends.

/// `initial * decay_rate^(t/T)`; with `staircase` the exponent is rounded down.
struct ExponentialFormula {
  double initial_learning_rate = 1e-3;
  double decay_rate = 0.5;
  Duration total_iters = 1.0;  ///< T: how long one factor takes
  bool staircase = false;
  SchedulerTarget target = {};

  double value(double t) const;

  double length() const { return kEndless; }

  static const ScheduleTable<ExponentialFormula>& table();
};

/// `initial / (1 + decay_rate * t^step_exponent / T)`; with `staircase` what `decay_rate`
/// multiplies is rounded down.
struct InverseExponentialTimeDecayFormula {
  double initial_learning_rate = 1e-3;
  double decay_rate = 0.5;
  Duration total_iters = 1.0;  ///< T
  double step_exponent = 1.0;
  bool staircase = false;
  SchedulerTarget target = {};

  double value(double t) const;

  double length() const { return kEndless; }

  static const ScheduleTable<InverseExponentialTimeDecayFormula>& table();
};

/// `initial * scale / sqrt(max(t, warmup_steps))`.
/// Source: Vaswani et al. 2017, arXiv:1706.03762, equation 3, whose rise is `warmup`.
struct InverseSquareRootDecayFormula {
  double initial_learning_rate = 1.0;
  double scale = 1.0;
  Duration warmup_steps = 1;
  SchedulerTarget target = {};

  double value(double t) const;

  double length() const { return kEndless; }

  static const ScheduleTable<InverseSquareRootDecayFormula>& table();
};

/// `initial * coefficient^t`: multiplied by the coefficient with each update, or whatever unit the
/// warm-up counts.
struct MultiplicativeFormula {
  double initial_learning_rate = 1e-3;
  double coefficient = 0.999;
  SchedulerTarget target = {};

  double value(double t) const;

  double length() const { return kEndless; }

  static const ScheduleTable<MultiplicativeFormula>& table();
};

class ExponentialLR final : public FormulaScheduler<ExponentialFormula> {
 public:
  using FormulaScheduler::FormulaScheduler;
};

class InverseExponentialTimeDecayLR final
    : public FormulaScheduler<InverseExponentialTimeDecayFormula> {
 public:
  using FormulaScheduler::FormulaScheduler;
};

class InverseSquareRootDecayLR final : public FormulaScheduler<InverseSquareRootDecayFormula> {
 public:
  using FormulaScheduler::FormulaScheduler;
};

class MultiplicativeLR final : public FormulaScheduler<MultiplicativeFormula> {
 public:
  using FormulaScheduler::FormulaScheduler;
};

}  // namespace rondo
