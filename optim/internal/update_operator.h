#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "optim/internal/rule.h"

namespace rondo::detail {

/// A dispatcher operator that updates parameters by a rule:
///
///   rondo::NAME_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] states, Tensor(c!)[] counters,
///                Tensor[] numbers, int variant, Tensor? skip) -> ()
///
/// which changes nothing where `skip` holds true, and its overload `scaled`, which multiplies the
/// gradients by a number first. Eager steps do not call that one: a pass of the traced backend
/// makes it of a clipping and an update.
struct UpdateOperator {
  std::string name;                    ///< "adam_"
  std::vector<CompiledRule> variants;  ///< such as with and without momentum
};

/// Makes sure that the operator can be called; \p op must stay.
void define_update_operator(const UpdateOperator& op);

/// Those of all optimizers that rondo brings.
std::vector<const UpdateOperator*> builtin_update_operators();

}  // namespace rondo::detail
