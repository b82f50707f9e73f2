#include "tracing/recording/recording_rules.h"

#include <algorithm>
#include <vector>

#include <ATen/core/Tensor.h>

#include "tracing/program/guards.h"
#include "tracing/recording/objection.h"

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
bool compares_a_tensor_with_itself(const RecordedCall& call, const SlotTable& table) {
  if (call.op.schema().name() != "aten::equal") {
    return false;
  }
  const at::Tensor& first = call.values[0].toTensor();
  const at::Tensor& second = call.values[1].toTensor();
  if (!first.has_storage() || !second.has_storage()) {
    return false;
  }
  const SlotId slot = table.find(first);
  return slot != kNoTensor && slot == table.find(second);
}

bool is_floating(const c10::IValue& value) {
  return value.isTensor() && value.toTensor().defined() &&
         (value.toTensor().is_floating_point() || value.toTensor().is_complex());
}

// A number that changes in every step is read this way, and no other.
bool reads_floating_point(const RecordedCall& call) {
  const auto& returns = call.op.schema().returns();
  return std::any_of(returns.begin(), returns.end(), [&](const c10::Argument& result) {
    const c10::TypeKind kind = result.type()->kind();
    return kind == c10::TypeKind::FloatType || kind == c10::TypeKind::ComplexType ||
           (kind == c10::TypeKind::NumberType && is_floating(call.values[0]));
  });
}

// LAPACK's gelsy takes pivots to begin with, and LibTorch hands it memory that nobody wrote.
bool is_left_to_chance(const RecordedCall& call) {
  if (call.op.schema().name() != "aten::linalg_lstsq") {
    return false;
  }
  const c10::IValue& driver = call.values[3];
  return driver.isNone() || driver.toStringRef() == "gelsy";
}

bool returns_tensors(const c10::OperatorHandle& op) {
  const auto& returns = op.schema().returns();
  return std::any_of(returns.begin(), returns.end(), [](const c10::Argument& result) {
    return result.type()->str().find("Tensor") != std::string::npos;
  });
}

}  // namespace

bool is_read(const RecordedCall& call, const SlotTable& table) {
  return is_indexed_by_mask(call) ||
         (call.effects.reads_host && !compares_a_tensor_with_itself(call, table));
}

bool is_indexed_by_mask(const RecordedCall& call) {
  if (call.op.schema().name() != "aten::index") {
    return false;
  }
  const c10::ArrayRef<c10::IValue> indices = call.values[1].toListRef();
  return std::any_of(indices.begin(), indices.end(), &is_mask);
}

void object_to_call(const RecordedCall& call, const SlotTable& table) {
  if (!call.effects.refusal.empty()) {
    throw Objection{"called " + call.name, call.effects.refusal};
  }
  if (is_left_to_chance(call)) {
    throw Objection{
        "called " + call.name + " with driver gelsy, whose pivots LibTorch leaves to chance",
        "equal inputs give unequal bytes: give driver gels, gelsd or gelss"};
  }
  if (!is_read(call, table)) {
    return;
  }
  if (reads_floating_point(call)) {
    throw Objection{
        "read a floating-point number on the host (" + call.name + ")",
        "it would be frozen into every later step. log_metrics and defer see it after the step; "
        "host_call when the step itself needs it; torch::where decides without the host"};
  }
  const std::vector<bool>& written = call.effects.writes;
  const bool writes = std::find(written.begin(), written.end(), true) != written.end();
  const bool is_size = has_size_from_data(call.op) || is_indexed_by_mask(call);
  if (writes || (returns_tensors(call.op) && !is_size)) {
    throw Objection{"read a tensor on the host (" + call.name + ")",
                    "a replay could not compare what it read: use an operator that returns it"};
  }
}

}  // namespace rondo
