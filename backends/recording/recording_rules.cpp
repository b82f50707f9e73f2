#include "backends/recording/recording_rules.h"

#include <algorithm>

#include <ATen/core/Tensor.h>

#include "backends/program/step_program.h"

namespace rondo {

namespace {

bool is_mask(const c10::IValue& index) {
  if (!index.isTensor() || !index.toTensor().defined()) {
    return false;
  }
  const at::ScalarType dtype = index.toTensor().scalar_type();
  return dtype == at::kBool || dtype == at::kByte;
}

// Multi-head attention asks whether its query and its key are one tensor.
bool compares_a_tensor_with_itself(const std::string& name,
                                   c10::ArrayRef<c10::IValue> arguments,
                                   const SlotTable& table) {
  if (name != "aten::equal") {
    return false;
  }
  const SlotId slot = table.find(arguments[0].toTensor());
  return slot != kNoTensor && slot == table.find(arguments[1].toTensor());
}

}  // namespace

std::optional<Objection> objection_to(const c10::OperatorHandle& op,
                                      const OperatorEffects& effects,
                                      c10::ArrayRef<c10::IValue> arguments,
                                      const SlotTable& table) {
  const std::string& base = op.schema().name();
  const std::string name = operator_name(op);
  if (!effects.refusal.empty()) {
    return Objection{"called " + name, effects.refusal};
  }
  if (base == "aten::index") {
    const c10::ArrayRef<c10::IValue> indices = arguments[1].toListRef();
    if (std::any_of(indices.begin(), indices.end(), &is_mask)) {
      return Objection{
          "indexed with a mask (" + name + ")",
          "the size of the result depends on the data: use where, or multiply by the mask"};
    }
  }
  if (effects.reads_host && !compares_a_tensor_with_itself(base, arguments, table)) {
    return Objection{
        "read a tensor on the host (" + name + ")",
        "the value would be frozen into every later step. log_metrics and defer see it after the "
        "step; host_call when the step itself needs it"};
  }
  return std::nullopt;
}

}  // namespace rondo
