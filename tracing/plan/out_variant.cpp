#include "tracing/plan/out_variant.h"

#include <c10/core/TensorOptions.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "tracing/program/operator_effects.h"

namespace rondo {

namespace {

using Overloads = std::unordered_map<std::string, std::vector<c10::OperatorName>>;

// Some 3,000 names: gathered once.
const Overloads& overloads_by_name() {
  static const Overloads all = [] {
    Overloads found;
    for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
      found[name.name].push_back(name);
    }
    return found;
  }();
  return all;
}

bool same_argument(const c10::Argument& a, const c10::Argument& b) {
  return a.name() == b.name() && *a.type() == *b.type();
}

// The same arguments in the same order, then as many written tensors as there are results.
bool writes_results_of(const c10::FunctionSchema& out, const c10::FunctionSchema& plain) {
  const size_t inputs = plain.arguments().size();
  if (out.arguments().size() != inputs + plain.returns().size()) {
    return false;
  }
  for (size_t i = 0; i < out.arguments().size(); ++i) {
    const c10::Argument& argument = out.arguments()[i];
    if (i < inputs ? is_written(argument) || !same_argument(argument, plain.arguments()[i])
                   : !is_written(argument)) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::optional<c10::OperatorHandle> find_out_variant(const c10::OperatorHandle& op,
                                                    c10::DeviceType device) {
  // `aten::native_x.out`, but also `aten::x_backward.grad_input`: the name does not tell, the
  // arguments do.
  const auto overloads = overloads_by_name().find(op.schema().name());
  if (overloads == overloads_by_name().end() || op.schema().returns().empty()) {
    return std::nullopt;
  }
  const c10::DispatchKey key =
      c10::computeDispatchKey(c10::nullopt, c10::nullopt, c10::Device(device));
  for (const c10::OperatorName& name : overloads->second) {
    const auto candidate = c10::Dispatcher::singleton().findSchema(name);
    if (candidate && writes_results_of(candidate->schema(), op.schema()) &&
        candidate->hasKernelForDispatchKey(key)) {
      return *candidate;
    }
  }
  return std::nullopt;
}

}  // namespace rondo
