#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "tracing/program/step_program.h"
#include "tracing/recording/outside_number.h"
#include "tracing/recording/slot_table.h"

namespace rondo {

/// Bytes that no instruction writes and that a program therefore has its own copy of: numbers from
/// outside of the step, and memory that host code filled through a pointer.
class FrozenTensors {
 public:
  FrozenTensors(StepProgram& program, SlotTable& table);

  /// Fills memory that has just been allocated with a pattern of eight bytes, other ones in each
  /// recording: host code writes no such bytes in two of them.
  void mark_fresh(const at::Tensor& tensor) const;

  /// \param known  with unwritten memory
  /// \return whether host code has written nothing either, so that its bytes mean nothing
  bool is_fresh(const KnownStorage& known) const;

  /// Makes a tensor a constant. All of its storage is copied, once: another constant, or a view,
  /// may lie elsewhere in it.
  /// \throws Objection  when it is large
  SlotId freeze(const at::Tensor& tensor);

  /// Makes an allocation a copy of the bytes that are in it now, copied again in each replay:
  /// later instructions may write into it. What is as fresh memory was becomes zeros.
  /// \param known  with unwritten memory
  void freeze_allocation(KnownStorage& known);

  const std::vector<OutsideNumber>& numbers() const { return numbers_; }

 private:
  void clear_fresh(const c10::Storage& storage) const;

  StepProgram& program_;
  SlotTable& table_;
  int64_t fresh_;  // the pattern
  std::vector<OutsideNumber> numbers_;
};

}  // namespace rondo
