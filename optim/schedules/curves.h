#pragma once

#include <optional>
#include <string>

#include "optim/schedules/formula_scheduler.h"

namespace rondo {

// Schedules with an end, whose value stays. `t` is what is done, in the unit of T, which is
// `total_iters`; names and formulas are those of the Cerebras trainer. "Learning rate" is what they
// mostly drive: any number of an optimizer can stand there.

/// Always `learning_rate`.
struct ConstantFormula {
  double learning_rate = 1e-3;
  std::optional<Duration> total_iters = {};  ///< none: for ever; a sequence needs it
  SchedulerTarget target = {};

  double value(double /*t*/) const { return learning_rate; }

  double length() const { return total_iters ? total_iters->amount() : kEndless; }

  static const ScheduleTable<ConstantFormula>& table();
};

/// A straight line, `initial + (end - initial) t/T`. With T = 0, `end` from the beginning.
struct LinearFormula {
  double initial_learning_rate = 1e-3;
  double end_learning_rate = 0.0;
  Duration total_iters = 1.0;  ///< T
  SchedulerTarget target = {};

  double value(double t) const;

  double length() const { return total_iters; }

  static const ScheduleTable<LinearFormula>& table();
};

/// `end + (initial - end) (1 - t/T)^power`. With `cycle` it never ends: at its end T becomes the
/// next multiple of itself.
struct PolynomialFormula {
  double initial_learning_rate = 1e-3;
  double end_learning_rate = 0.0;
  Duration total_iters = 1.0;  ///< T
  double power = 1.0;
  bool cycle = false;
  SchedulerTarget target = {};

  double value(double t) const;

  double length() const { return cycle ? kEndless : total_iters.amount(); }

  static const ScheduleTable<PolynomialFormula>& table();
};

/// Half a cosine, `end + (initial - end) (1 + cos(pi t/T))/2`. With T = 0, `end` from the
/// beginning. Source: Loshchilov and Hutter 2017, arXiv:1608.03983, equation 5 without restarts.
struct CosineDecayFormula {
  double initial_learning_rate = 1e-3;
  double end_learning_rate = 0.0;
  Duration total_iters = 1.0;  ///< T
  SchedulerTarget target = {};

  double value(double t) const;

  double length() const { return total_iters; }

  static const ScheduleTable<CosineDecayFormula>& table();
};

/// A line from `initial` to `learning_rate` over `warmup_iters`, that value, and over the last
/// `decay_iters` of T a way to `end`: with s from 0 to 1, a share `1 - s` ("linear"),
/// `(1 + cos(pi s))/2` ("cosine") or `1 - sqrt(s)` ("sqrt") of the difference is left.
/// Source: Hu et al. 2024, arXiv:2404.06395; "sqrt": Haegele et al. 2024, arXiv:2405.18392.
struct WarmupStableDecayFormula {
  double learning_rate = 1e-3;
  Duration warmup_iters = 0;
  Duration decay_iters = 0.1;
  std::string decay = "linear";
  double initial_learning_rate = 0.0;
  double end_learning_rate = 0.0;
  Duration total_iters = 1.0;  ///< T
  SchedulerTarget target = {};

  double value(double t) const;

  double length() const { return total_iters; }

  static const ScheduleTable<WarmupStableDecayFormula>& table();
};

class ConstantLR final : public FormulaScheduler<ConstantFormula> {
 public:
  using FormulaScheduler::FormulaScheduler;
};

class LinearLR final : public FormulaScheduler<LinearFormula> {
 public:
  using FormulaScheduler::FormulaScheduler;
};

class PolynomialLR final : public FormulaScheduler<PolynomialFormula> {
 public:
  using FormulaScheduler::FormulaScheduler;
};

class CosineDecayLR final : public FormulaScheduler<CosineDecayFormula> {
 public:
  using FormulaScheduler::FormulaScheduler;
};

class WarmupStableDecayLR final : public FormulaScheduler<WarmupStableDecayFormula> {
 public:
  using FormulaScheduler::FormulaScheduler;
};

}  // namespace rondo
