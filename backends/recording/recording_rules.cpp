#include "backends/recording/recording_rules.h"

#include <algorithm>

#include <ATen/core/Tensor.h>

#include "backends/program/guards.h"
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
  if (!arguments[0].toTensor().has_storage() || !arguments[1].toTensor().has_storage()) {
    return false;
  }
  const SlotId slot = table.find(arguments[0].toTensor());
  return slot != kNoTensor && slot == table.find(arguments[1].toTensor());
}

bool is_floating(const c10::IValue& value) {
  return value.isTensor() && value.toTensor().defined() &&
         (value.toTensor().is_floating_point() || value.toTensor().is_complex());
}

// A number that changes in every step is read this way, and no other.
bool reads_floating_point(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) {
  const auto& returns = op.schema().returns();
  return std::any_of(returns.begin(), returns.end(), [&](const c10::Argument& result) {
    const c10::TypeKind kind = result.type()->kind();
    return kind == c10::TypeKind::FloatType || kind == c10::TypeKind::ComplexType ||
           (kind == c10::TypeKind::NumberType && is_floating(arguments[0]));
  });
}

bool returns_tensors(const c10::OperatorHandle& op) {
  const auto& returns = op.schema().returns();
  return std::any_of(returns.begin(), returns.end(), [](const c10::Argument& result) {
    return result.type()->str().find("Tensor") != std::string::npos;
  });
}

}  // namespace

bool is_read(const c10::OperatorHandle& op,
             const OperatorEffects& effects,
             c10::ArrayRef<c10::IValue> arguments,
             const SlotTable& table) {
  return is_indexed_by_mask(op, arguments) ||
         (effects.reads_host &&
          !compares_a_tensor_with_itself(op.schema().name(), arguments, table));
}

bool is_indexed_by_mask(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) {
  if (op.schema().name() != "aten::index") {
    return false;
  }
  const c10::ArrayRef<c10::IValue> indices = arguments[1].toListRef();
  return std::any_of(indices.begin(), indices.end(), &is_mask);
}

std::optional<Objection> objection_to(const c10::OperatorHandle& op,
                                      const OperatorEffects& effects,
                                      c10::ArrayRef<c10::IValue> arguments,
                                      const SlotTable& table) {
  const std::string name = operator_name(op);
  if (!effects.refusal.empty()) {
    return Objection{"called " + name, effects.refusal};
  }
  if (!is_read(op, effects, arguments, table)) {
    return std::nullopt;
  }
  if (reads_floating_point(op, arguments)) {
    return Objection{
        "read a floating-point number on the host (" + name + ")",
        "it would be frozen into every later step. log_metrics and defer see it after the step; "
        "host_call when the step itself needs it; torch::where decides without the host"};
  }
  const bool writes =
      std::find(effects.writes.begin(), effects.writes.end(), true) != effects.writes.end();
  const bool is_size = has_size_from_data(op) || is_indexed_by_mask(op, arguments);
  if (writes || (returns_tensors(op) && !is_size)) {
    return Objection{"read a tensor on the host (" + name + ")",
                     "a replay could not compare what it read: use an operator that returns it"};
  }
  return std::nullopt;
}

}  // namespace rondo
