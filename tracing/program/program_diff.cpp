#include "tracing/program/program_diff.h"

#include <algorithm>

#include "core/state_dict.h"

namespace rondo {

namespace {

std::string place(const StepProgram& program, size_t index) {
  const Instruction& instruction = program.instructions[index];
  return "operator " + std::to_string(index) + ", " + operator_name(instruction.op) + " in " +
         to_string(program.locations[static_cast<size_t>(instruction.location)]);
}

std::string was(const std::string& first, const std::string& second) {
  return first + " in the first capture, " + second + " in the second";
}

// For people: a number for a scalar, else the shape.
std::string value_text(const Slot& slot) {
  return slot.value.numel() == 1 ? to_text(c10::IValue(slot.value.item()))
                                 : to_text(slot) + " with other bytes";
}

ProgramDifference slot_difference(const Slot& a, const Slot& b) {
  if (a.kind != b.kind || a.storage != b.storage || a.name != b.name) {
    return {"another tensor"};
  }
  if (a.dtype != b.dtype || a.sizes != b.sizes || a.strides != b.strides || a.offset != b.offset ||
      a.is_wrapped_number != b.is_wrapped_number || a.device != b.device) {
    return {was(to_text(a), to_text(b)), true};
  }
  if (a.kind == SlotKind::Constant && !equal_bytes(a.value, b.value)) {
    return {was(value_text(a), value_text(b)), true};
  }
  return {};
}

class Comparison {
 public:
  Comparison(const StepProgram& first, const StepProgram& second)
      : first_(first), second_(second) {}

  ProgramDifference run() const {
    const size_t shared = std::min(first_.instructions.size(), second_.instructions.size());
    for (size_t i = 0; i < shared; ++i) {
      ProgramDifference difference = instruction(i);
      if (!difference.text.empty()) {
        difference.text = place(first_, i) + difference.text;
        return difference;
      }
    }
    if (first_.instructions.size() != second_.instructions.size()) {
      const bool first_is_longer = first_.instructions.size() > shared;
      return {place(first_is_longer ? first_ : second_, shared) + ": only in the " +
              (first_is_longer ? "first" : "second") + " capture"};
    }
    if (first_.host_calls != second_.host_calls) {
      return {"other host calls"};
    }
    const ProgramDifference difference = outputs();
    return difference.text.empty() ? closures() : difference;
  }

 private:
  ProgramDifference instruction(size_t index) const {
    const Instruction& a = first_.instructions[index];
    const Instruction& b = second_.instructions[index];
    if (a.op.operator_name() != b.op.operator_name()) {
      return {": " + was(operator_name(a.op), operator_name(b.op)) + " (there in " +
              to_string(second_.locations[static_cast<size_t>(b.location)]) + ")"};
    }
    for (size_t i = 0; i < a.arguments.size(); ++i) {
      const ProgramDifference difference = argument(a.arguments[i], b.arguments[i]);
      if (!difference.text.empty()) {
        const std::string& name = a.op.schema().arguments()[i].name();
        return {", argument \"" + name + "\": " + difference.text, difference.is_value};
      }
    }
    for (size_t i = 0; i < a.results.size(); ++i) {
      const ProgramDifference difference = argument(a.results[i], b.results[i]);
      if (!difference.text.empty()) {
        return {", result " + std::to_string(i) + ": " + difference.text, difference.is_value};
      }
    }
    return {};
  }

  ProgramDifference argument(const Argument& a, const Argument& b) const {
    if (a.kind != b.kind) {
      return {"another kind of value"};
    }
    if (a.kind != Argument::Kind::Constant) {
      return slots(a.slots, b.slots);
    }
    const std::string text_a = to_text(a.constant);
    const std::string text_b = to_text(b.constant);
    return text_a == text_b ? ProgramDifference() : ProgramDifference{was(text_a, text_b), true};
  }

  ProgramDifference slots(const std::vector<SlotId>& a, const std::vector<SlotId>& b) const {
    if (a.size() != b.size()) {
      return {was(std::to_string(a.size()) + " tensors", std::to_string(b.size()))};
    }
    for (size_t i = 0; i < a.size(); ++i) {
      if (a[i] != b[i]) {
        return {"another tensor"};
      }
      if (a[i] != kNoTensor) {
        const auto slot = static_cast<size_t>(a[i]);
        ProgramDifference difference = slot_difference(first_.slots[slot], second_.slots[slot]);
        if (!difference.text.empty()) {
          return difference;
        }
      }
    }
    return {};
  }

  ProgramDifference outputs() const {
    if (first_.outputs.size() != second_.outputs.size()) {
      return {was(std::to_string(first_.outputs.size()) + " outputs",
                  std::to_string(second_.outputs.size()))};
    }
    for (size_t i = 0; i < first_.outputs.size(); ++i) {
      const auto& [name, slot] = first_.outputs[i];
      const auto& [other_name, other_slot] = second_.outputs[i];
      if (name != other_name) {
        return {was("output \"" + name + "\"", "\"" + other_name + "\"")};
      }
      const ProgramDifference difference = slots({slot}, {other_slot});
      if (!difference.text.empty()) {
        return {"output \"" + name + "\": " + difference.text, difference.is_value};
      }
    }
    return {};
  }

  ProgramDifference closures() const {
    if (first_.closures.size() != second_.closures.size()) {
      return {was(std::to_string(first_.closures.size()) + " step closures",
                  std::to_string(second_.closures.size()))};
    }
    for (size_t i = 0; i < first_.closures.size(); ++i) {
      const ClosureOutput& a = first_.closures[i];
      const ClosureOutput& b = second_.closures[i];
      const ProgramDifference difference = a.cadence == b.cadence
                                               ? slots(a.tensors, b.tensors)
                                               : ProgramDifference{"another cadence", true};
      if (!difference.text.empty()) {
        return {"step closure " + std::to_string(i) + ": " + difference.text, difference.is_value};
      }
    }
    return {};
  }

  const StepProgram& first_;
  const StepProgram& second_;
};

}  // namespace

ProgramDifference first_difference(const StepProgram& first, const StepProgram& second) {
  return Comparison(first, second).run();
}

}  // namespace rondo
