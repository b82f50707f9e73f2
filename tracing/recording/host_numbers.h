#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/util/ArrayRef.h>

#include "tracing/recording/recorded_call.h"
#include "tracing/recording/slot_table.h"
#include "tracing/recording/state_index.h"

namespace rondo {

/// Tells numbers that the host made, of a shape for instance, from data of the step. What the host
/// makes of the former is in the program, and captures compare that.
class HostNumbers {
 public:
  HostNumbers(SlotTable& table, StateIndex& state) : table_(table), state_(state) {}

  /// Whether the host reads a number that it made itself.
  bool are_read_by(const RecordedCall& call) const;

 private:
  bool varies(const at::Tensor& tensor) const;
  bool any_varies(c10::ArrayRef<c10::IValue> values) const;

  SlotTable& table_;
  StateIndex& state_;
};

}  // namespace rondo
