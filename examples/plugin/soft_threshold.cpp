// An operator of a user's own that updates in place, with the facts that let passes work around it.

#include "soft_threshold.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <rondo/core/operator_facts.h>
#include <torch/library.h>

#include <string>
#include <utility>

namespace {

constexpr const char* kSchema = "soft_threshold_(Tensor(a!) weight, float by) -> ()";

void threshold(at::Tensor& weight, double by) {
  weight.sub_(weight.clamp(-by, by));
}

// Once, when the plugin is loaded.
const bool has_facts = [] {
  rondo::OperatorFacts facts;
  facts.schema = std::string("example::") + kSchema;
  facts.scratch_bytes = [](const auto& arguments, const auto& /*results*/) {
    return arguments[0].bytes();  // what `clamp` returns
  };
  rondo::register_operator_facts(std::move(facts));
  return true;
}();

}  // namespace

TORCH_LIBRARY_FRAGMENT(example, library) {
  library.def(kSchema);
}

TORCH_LIBRARY_IMPL(example, CPU, library) {
  library.impl("soft_threshold_", &threshold);
}

void soft_threshold_(at::Tensor& weight, double by) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("example::soft_threshold_", "")
                             .typed<void(at::Tensor&, double)>();
  op.call(weight, by);
}
