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

/// Whether the host sees a value, or the size of a result, that follows from bytes of a tensor. One
/// whose answer cannot change is no read.
bool is_read(const c10::OperatorHandle& op,
             const OperatorEffects& effects,
             c10::ArrayRef<c10::IValue> arguments,
             const SlotTable& table);

bool is_indexed_by_mask(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments);

/// Looks for what a replay could not repeat, before the operator runs: numbers that are read on the
/// host and change from step to step, and operators that are refused by name.
std::optional<Objection> objection_to(const c10::OperatorHandle& op,
                                      const OperatorEffects& effects,
                                      c10::ArrayRef<c10::IValue> arguments,
                                      const SlotTable& table);

}  // namespace rondo
