#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "tracing/program/step_program.h"

namespace rondo {

// What passes and kernels ask about an instruction.

/// The slot of a tensor argument or result; null when it is none, or undefined.
const Slot* slot_at(const StepProgram& program, const std::vector<Argument>& arguments, size_t i);

/// Its number; the argument must be a tensor.
inline SlotId id_at(const std::vector<Argument>& arguments, size_t i) {
  return arguments[i].slots[0];
}

/// float32, row after row without gaps.
bool is_plain_float(const Slot* slot);

/// The same for the tensors at these places.
bool are_plain_floats(const StepProgram& program,
                      const std::vector<Argument>& arguments,
                      std::initializer_list<size_t> places);

/// float32 without gaps, and of so many elements, at all these places.
bool have_floats(const StepProgram& program,
                 const std::vector<Argument>& arguments,
                 std::initializer_list<size_t> places,
                 int64_t count);

/// The value of a constant number; false when the argument is not one, or another one.
bool is_constant(const Argument& argument, double value);

/// Whether it is a constant integer.
bool is_integer(const Argument& argument);

bool is_none(const Argument& argument);

}  // namespace rondo
