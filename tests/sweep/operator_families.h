#pragma once

#include <ATen/core/ivalue.h>

#include <map>
#include <string>
#include <vector>

namespace rondo::test {

/// Arguments by the names that they have in an operator's schema; the others follow from types.
using NamedArguments = std::map<std::string, c10::IValue>;

/// For operators that guesses do not suit.
/// \param op  with namespace, without overload: "aten::huber_loss"
std::vector<NamedArguments> family_arguments(const std::string& op);

}  // namespace rondo::test
