#pragma once

#include <ATen/core/ivalue.h>

#include <functional>
#include <string>
#include <vector>

namespace rondo {

/// An operator with its arguments: a call does its work. Between calls tensors keep their shapes;
/// their elements may change, and move.
using PreparedCall = std::function<void()>;

/// Makes a prepared call of an operator, or an empty one when it has none for such arguments.
/// \param arguments  as the operator's schema lists them
using PrepareCall = std::function<PreparedCall(const std::vector<c10::IValue>& arguments)>;

/// Says that an operator of the dispatcher can be prepared: what it finds out about its arguments
/// (lists unpacked, layouts checked) is then found out once, when a step is planned,
/// rather than in each step. For operators that write their arguments and return nothing. The
/// prepared call must leave the same bytes. Belongs beside the operator's registration.
/// \param op  with namespace, such as "rondo::sgd_"
void register_prepared_operator(const std::string& op, PrepareCall prepare);

/// Null when there is none.
const PrepareCall* find_prepared_operator(const std::string& op);

}  // namespace rondo
