#include "tracing/program/arguments.h"

#include <algorithm>

namespace rondo {

const Slot* slot_at(const StepProgram& program, const std::vector<Argument>& arguments, size_t i) {
  if (arguments[i].kind != Argument::Kind::Tensor || arguments[i].slots[0] == kNoTensor) {
    return nullptr;
  }
  return &program.slots[static_cast<size_t>(arguments[i].slots[0])];
}

bool is_plain_float(const Slot* slot) {
  return slot != nullptr && slot->dtype == at::kFloat && is_contiguous(*slot);
}

bool are_plain_floats(const StepProgram& program,
                      const std::vector<Argument>& arguments,
                      std::initializer_list<size_t> places) {
  return std::all_of(places.begin(), places.end(), [&](size_t i) {
    return is_plain_float(slot_at(program, arguments, i));
  });
}

bool have_floats(const StepProgram& program,
                 const std::vector<Argument>& arguments,
                 std::initializer_list<size_t> places,
                 int64_t count) {
  return std::all_of(places.begin(), places.end(), [&](size_t i) {
    const Slot* const slot = slot_at(program, arguments, i);
    return is_plain_float(slot) && numel(*slot) == count;
  });
}

bool is_constant(const Argument& argument, double value) {
  return argument.kind == Argument::Kind::Constant && argument.constant.isScalar() &&
         argument.constant.toScalar().toDouble() == value;
}

bool is_integer(const Argument& argument) {
  return argument.kind == Argument::Kind::Constant && argument.constant.isInt();
}

bool is_none(const Argument& argument) {
  return argument.kind == Argument::Kind::Constant
             ? argument.constant.isNone()
             : argument.kind == Argument::Kind::Tensor && argument.slots[0] == kNoTensor;
}

}  // namespace rondo
