#pragma once

#include <optional>
#include <string>

#include "optim/schedules/formula_scheduler.h"

namespace rondo {

// Schedules that rise and fall. `t` is what is done; names and formulas are those of the Cerebras
// trainer and PyTorch.

/// A cosine, `min + (initial - min) (1 + cos(pi t/T))/2`, that rises again after T: T falling, T
/// rising. CosineDecayLR stays at its end.
struct CosineAnnealingFormula {
  double initial_learning_rate = 1e-3;
  Duration T_max = 1.0;  ///< T
  double eta_min = 0.0;
  SchedulerTarget target = {};

  double value(double t) const;

  double length() const { return kEndless; }

  static const ScheduleTable<CosineAnnealingFormula>& table();
};

/// Half a cosine from `initial` to `min`, again and again: the first over T_0, each over T_mult
/// times the one before, rounded down.
/// Source: Loshchilov and Hutter 2017, arXiv:1608.03983, equation 5.
struct CosineAnnealingWarmRestartsFormula {
  double initial_learning_rate = 1e-3;
  Duration T_0 = 0.1;
  double T_mult = 1.0;
  double eta_min = 0.0;
  SchedulerTarget target = {};

  double value(double t) const;

  double length() const { return kEndless; }

  static const ScheduleTable<CosineAnnealingWarmRestartsFormula>& table();
};

/// Lines from `base_lr` to `max_lr` over `step_size_up` and back over `step_size_down`. The height
/// of a cycle is the whole ("triangular"), half of the one before ("triangular2"), or multiplied by
/// `gamma^t` ("exp_range").
/// Source: Smith 2017, arXiv:1506.01186.
struct CyclicFormula {
  double base_lr = 1e-4;
  double max_lr = 1e-3;
  Duration step_size_up = 2000;
  std::optional<Duration> step_size_down = {};  ///< none: as long as up
  std::string mode = "triangular";
  double gamma = 1.0;
  SchedulerTarget target = {};

  double value(double t) const;

  double length() const { return kEndless; }

  static const ScheduleTable<CyclicFormula>& table();
};

/// A rise from `initial` to `max_lr` over the share `pct_start` of T, and a fall to
/// `initial / final_div_factor`; with `three_phase` the fall to `initial` takes as long as the
/// rise, and another one the rest. As in PyTorch phases end one before: the last value is that at T
/// - 1. Source: Smith and Topin 2018, arXiv:1708.07120.
struct OneCycleFormula {
  double initial_learning_rate = 1e-4;
  double max_lr = 1e-3;
  Duration total_steps = 1.0;  ///< T
  double pct_start = 0.3;
  double final_div_factor = 1e4;
  bool three_phase = false;
  std::string anneal_strategy = "cos";
  SchedulerTarget target = {};

  double value(double t) const;

  double length() const { return total_steps; }

  static const ScheduleTable<OneCycleFormula>& table();
};

class CosineAnnealingLR final : public FormulaScheduler<CosineAnnealingFormula> {
 public:
  using FormulaScheduler::FormulaScheduler;
};

class CosineAnnealingWarmRestarts final
    : public FormulaScheduler<CosineAnnealingWarmRestartsFormula> {
 public:
  using FormulaScheduler::FormulaScheduler;
};

class CyclicLR final : public FormulaScheduler<CyclicFormula> {
 public:
  using FormulaScheduler::FormulaScheduler;
};

class OneCycleLR final : public FormulaScheduler<OneCycleFormula> {
 public:
  using FormulaScheduler::FormulaScheduler;
};

}  // namespace rondo
