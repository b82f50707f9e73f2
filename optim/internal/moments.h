#pragma once

#include "optim/internal/rule.h"
#include "optim/internal/update_operator.h"
#include "optim/internal/verbs.h"
#include "optim/optimizer_table.h"

// What the relatives of Adam have in common.

namespace rondo::rules {

/// The gradient with the L2 penalty of weight decay; a decoupled decay shrinks `param` instead.
/// \param by  has `keep`, 1 - lr * decay, and `weight_decay`
template <bool kIsDecoupled, class By, class V>
RONDO_INLINE V decayed(const By& by, V& param, const V& grad) {
  V slope = grad;
  if constexpr (kIsDecoupled) {
    param = param * by.keep;
  } else {
    slope = add_nonzero(grad, param, by.weight_decay);
  }
  return slope;
}

/// The operator whose variant 1 decays decoupled.
template <template <bool kIsDecoupled> class Rule>
detail::UpdateOperator operator_of_decays(const char* name) {
  return {name,
          {detail::RuleCompiler<Rule<false>>::compiled(),
           detail::RuleCompiler<Rule<true>>::compiled()}};
}

/// What the keys are said to be, where optimizers differ.
struct MomentDocs {
  const char* betas = "decay rates of the two moments";
  const char* eps = "added to the denominator";
  const char* weight_decay = "L2 penalty, added to the gradient unless decoupled";
};

/// The table with `lr`, `betas`, `eps` and `weight_decay`.
template <class Options>
OptimizerTable<Options> table_of_moments(const char* name, const char* doc, MomentDocs docs = {}) {
  OptimizerTable<Options> table(name, doc);
  table.number("lr", &Options::lr, at_least(0), "step size")
      .numbers("betas", {"beta1", "beta2"}, &Options::betas, below_one(), docs.betas)
      .number("eps", &Options::eps, at_least(0), docs.eps)
      .number("weight_decay", &Options::weight_decay, at_least(0), docs.weight_decay);
  return table;
}

}  // namespace rondo::rules
