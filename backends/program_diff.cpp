#include "backends/program_diff.h"

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

std::string slot_difference(const Slot& a, const Slot& b) {
  if (a.kind != b.kind || a.storage != b.storage || a.name != b.name) {
    return "another tensor";
  }
  if (a.dtype != b.dtype || a.sizes != b.sizes || a.strides != b.strides || a.offset != b.offset ||
      a.is_wrapped_number != b.is_wrapped_number) {
    return was(to_text(a), to_text(b));
  }
  if (a.kind == SlotKind::Constant && !equal_bytes(a.value, b.value)) {
    return was(value_text(a), value_text(b));
  }
  return "";
}

std::string slots_difference(const StepProgram& first,
                             const StepProgram& second,
                             const std::vector<SlotId>& a,
                             const std::vector<SlotId>& b) {
  if (a.size() != b.size()) {
    return was(std::to_string(a.size()) + " tensors", std::to_string(b.size()));
  }
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i]) {
      return "another tensor";
    }
    if (a[i] != kNoTensor) {
      const auto slot = static_cast<size_t>(a[i]);
      const std::string text = slot_difference(first.slots[slot], second.slots[slot]);
      if (!text.empty()) {
        return text;
      }
    }
  }
  return "";
}

std::string argument_difference(const StepProgram& first,
                                const StepProgram& second,
                                const Argument& a,
                                const Argument& b) {
  if (a.kind != b.kind) {
    return "another kind of value";
  }
  if (a.kind != Argument::Kind::Constant) {
    return slots_difference(first, second, a.slots, b.slots);
  }
  const std::string text_a = to_text(a.constant);
  const std::string text_b = to_text(b.constant);
  return text_a == text_b ? "" : was(text_a, text_b);
}

std::string instruction_difference(const StepProgram& first,
                                   const StepProgram& second,
                                   size_t index) {
  const Instruction& a = first.instructions[index];
  const Instruction& b = second.instructions[index];
  if (a.op.operator_name() != b.op.operator_name()) {
    return place(first, index) + ": " + was(operator_name(a.op), operator_name(b.op)) +
           " (there in " + to_string(second.locations[static_cast<size_t>(b.location)]) + ")";
  }
  for (size_t i = 0; i < a.arguments.size(); ++i) {
    const std::string text = argument_difference(first, second, a.arguments[i], b.arguments[i]);
    if (!text.empty()) {
      return place(first, index) + ", argument \"" + a.op.schema().arguments()[i].name() +
             "\": " + text;
    }
  }
  for (size_t i = 0; i < a.results.size(); ++i) {
    const std::string text = argument_difference(first, second, a.results[i], b.results[i]);
    if (!text.empty()) {
      return place(first, index) + ", result " + std::to_string(i) + ": " + text;
    }
  }
  return "";
}

std::string outputs_difference(const StepProgram& first, const StepProgram& second) {
  if (first.outputs.size() != second.outputs.size()) {
    return was(std::to_string(first.outputs.size()) + " outputs",
               std::to_string(second.outputs.size()));
  }
  for (size_t i = 0; i < first.outputs.size(); ++i) {
    const auto& [name, slot] = first.outputs[i];
    const auto& [other_name, other_slot] = second.outputs[i];
    if (name != other_name) {
      return was("output \"" + name + "\"", "\"" + other_name + "\"");
    }
    const std::string text = slots_difference(first, second, {slot}, {other_slot});
    if (!text.empty()) {
      return "output \"" + name + "\": " + text;
    }
  }
  return "";
}

std::string closures_difference(const StepProgram& first, const StepProgram& second) {
  if (first.closures.size() != second.closures.size()) {
    return was(std::to_string(first.closures.size()) + " step closures",
               std::to_string(second.closures.size()));
  }
  for (size_t i = 0; i < first.closures.size(); ++i) {
    const ClosureOutput& a = first.closures[i];
    const ClosureOutput& b = second.closures[i];
    const std::string text = a.cadence == b.cadence
                                 ? slots_difference(first, second, a.tensors, b.tensors)
                                 : "another cadence";
    if (!text.empty()) {
      return "step closure " + std::to_string(i) + ": " + text;
    }
  }
  return "";
}

}  // namespace

std::string first_difference(const StepProgram& first, const StepProgram& second) {
  const size_t shared = std::min(first.instructions.size(), second.instructions.size());
  for (size_t i = 0; i < shared; ++i) {
    const std::string text = instruction_difference(first, second, i);
    if (!text.empty()) {
      return text;
    }
  }
  if (first.instructions.size() != second.instructions.size()) {
    const StepProgram& longer = first.instructions.size() > shared ? first : second;
    return place(longer, shared) + ": only in the " + (&longer == &first ? "first" : "second") +
           " capture";
  }
  if (first.host_calls != second.host_calls) {
    return "other host calls";
  }
  const std::string outputs = outputs_difference(first, second);
  return outputs.empty() ? closures_difference(first, second) : outputs;
}

}  // namespace rondo
