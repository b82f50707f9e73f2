#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <c10/util/ArrayRef.h>

#include <optional>
#include <string>

#include "backends/recording/operator_effects.h"
#include "backends/recording/slot_table.h"

namespace rondo {

/// Why a call of an operator cannot be recorded, and what to do instead.
struct Objection {
  std::string what;
  std::string advice;
};

/// Looks for what a replay could not repeat, before the operator runs: values and sizes that follow
/// from bytes of a tensor, and operators that are refused by name. A host read that passes has an
/// answer that cannot change.
std::optional<Objection> objection_to(const c10::OperatorHandle& op,
                                      const OperatorEffects& effects,
                                      c10::ArrayRef<c10::IValue> arguments,
                                      const SlotTable& table);

}  // namespace rondo
