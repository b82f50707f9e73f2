#include "tracing/program/guards.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/enum_tag.h>

#include <algorithm>

namespace rondo {

namespace {

std::string sizes_text(const at::Tensor& tensor) {
  return tensor.defined() ? c10::str(tensor.sizes()) : "none";
}

std::string sizes_text(const StepProgram& program, SlotId slot) {
  return slot == kNoTensor
             ? "none"
             : c10::str(at::IntArrayRef(program.slots[static_cast<size_t>(slot)].sizes));
}

void add(std::string& text, const std::string& answer) {
  text += (text.empty() ? "" : ", ") + answer;
}

bool holds_constant(const Result& result) {
  return result.kind == Argument::Kind::Constant;
}

}  // namespace

bool has_size_from_data(const c10::OperatorHandle& op) {
  const std::string& name = op.schema().name();
  // The tags of 1.13 miss the second one.
  return name == kIndexByMask || name == "aten::_unique" ||
         (op.hasTag(at::Tag::dynamic_output_shape) && name != "aten::index");
}

bool is_guard(const Instruction& instruction) {
  const std::vector<Result>& results = instruction.results;
  if (std::all_of(results.begin(), results.end(), holds_constant)) {
    // Without results it is a check, which throws.
    return !results.empty() || instruction.op.hasTag(at::Tag::data_dependent_output);
  }
  return has_size_from_data(instruction.op);
}

std::string answer_in(c10::ArrayRef<c10::IValue> returned) {
  std::string text;
  for (const c10::IValue& value : returned) {
    if (value.isTensorList()) {
      for (const c10::IValue& item : value.toListRef()) {
        add(text, sizes_text(item.toTensor()));
      }
    } else {
      add(text, value.isTensor() ? sizes_text(value.toTensor()) : to_text(value));
    }
  }
  return text;
}

std::string answer_of(const StepProgram& program, const Instruction& guard) {
  std::string text;
  for (const Result& result : guard.results) {
    if (holds_constant(result)) {
      add(text, to_text(result.constant));
    }
    for (const SlotId slot : result.slots) {
      add(text, sizes_text(program, slot));
    }
  }
  return text;
}

std::vector<std::string> answers_of(const StepProgram& program) {
  std::vector<std::string> answers;
  for (const Instruction& instruction : program.instructions) {
    if (is_guard(instruction)) {
      answers.push_back(answer_of(program, instruction));
    }
  }
  return answers;
}

std::vector<StepGuard> guards_of(const StepProgram& program) {
  std::vector<StepGuard> guards;
  for (const Instruction& instruction : program.instructions) {
    if (is_guard(instruction)) {
      std::string read = operator_name(instruction.op);
      if (instruction.origin != 0) {  // a step from a file does not know
        const std::string source = source_of(program, instruction);
        read += " in " + module_of(program, instruction) + (source.empty() ? "" : " at " + source);
      }
      guards.push_back({std::move(read), answer_of(program, instruction)});
    }
  }
  return guards;
}

}  // namespace rondo
