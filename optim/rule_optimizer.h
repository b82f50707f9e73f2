#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "optim/optimizer.h"
#include "optim/optimizer_table.h"

namespace c10 {
class OperatorHandle;
}

namespace rondo {

namespace detail {
struct UpdateOperator;
}

/// Base of the optimizers whose update of an element depends on that element alone: the update is a
/// rule (optim/internal/rule.h), which one dispatcher operator applies to all parameters of a
/// group. In a loop, numbers below the format's exponent count as zero (docs/decisions/012).
class RuleOptimizer : public Optimizer {
 protected:
  /// \param variant  of the operator
  /// \throws UsageError  for a number out of its range
  template <class Options>
  RuleOptimizer(const detail::UpdateOperator& op,
                int64_t variant,
                const OptimizerTable<Options>& table,
                const Options& options)
      : RuleOptimizer(op, variant, table.checked_numbers(options), groups_in(options)) {}

  RuleOptimizer(const detail::UpdateOperator& op,
                int64_t variant,
                Numbers numbers,
                std::vector<ParamGroupOptions> groups);

  void update(ParamGroup& group) final;

  bool skips_itself() const final { return true; }

 private:
  const detail::UpdateOperator& op_;
  int64_t variant_;
  std::shared_ptr<const c10::OperatorHandle> update_;  // looked up once
};

}  // namespace rondo
