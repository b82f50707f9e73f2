#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "core/operator_facts.h"
#include "tracing/passes/passes.h"
#include "tracing/program/storages.h"

namespace rondo {

namespace {

// Of an update, which has an overload that scales its gradients first; null: it is none.
const ScaledForm* scaled_form(const Instruction& instruction) {
  const OperatorFacts* const facts = find_operator_facts(operator_name(instruction.op));
  return facts != nullptr && facts->scaled ? &*facts->scaled : nullptr;
}

// mul_(gradient, scale) with one number of the gradient's dtype.
bool scales(const StepProgram& program, const Instruction& instruction, SlotId gradient) {
  if (!has_name(instruction, "aten::mul_.Tensor") ||
      instruction.arguments[0].slots[0] != gradient ||
      instruction.arguments[1].kind != Argument::Kind::Tensor) {
    return false;
  }
  const Slot& scaled = slot_of(program, gradient);
  const Slot& scale = slot_of(program, instruction.arguments[1].slots[0]);
  const bool is_known = scaled.dtype == at::kFloat || scaled.dtype == at::kDouble;
  return is_known && scale.dtype == scaled.dtype && scale.sizes.empty();
}

// The instruction before an update that scales a gradient, when nothing but it and the update uses
// the gradient from there on.
std::optional<size_t> scaling_before(const StepProgram& program, size_t update, SlotId gradient) {
  for (size_t i = update; i-- > 0;) {
    const Instruction& instruction = program.instructions[i];
    if (touches(program, instruction, slot_of(program, gradient))) {
      return scales(program, instruction, gradient) ? std::optional(i) : std::nullopt;
    }
  }
  return std::nullopt;
}

/// What clipping did with all gradients of an update.
struct Scaling {
  std::vector<size_t> instructions;
  SlotId scale = kNoTensor;
};

std::optional<Scaling> scaling_of(const StepProgram& program,
                                  const StorageFacts& facts,
                                  size_t update,
                                  size_t gradients) {
  Scaling scaling;
  for (const SlotId gradient : program.instructions[update].arguments[gradients].slots) {
    const auto found = scaling_before(program, update, gradient);
    if (!found) {
      return std::nullopt;
    }
    const std::vector<size_t>& others = scaling.instructions;
    const SlotId scale = program.instructions[*found].arguments[1].slots[0];
    const bool is_same = others.empty() || scale == scaling.scale;
    // Two parameters may have one gradient: it is scaled once, not once for each.
    const bool is_shared = std::find(others.begin(), others.end(), *found) != others.end();
    if (!is_same || is_shared || facts.is_written(storage_of(program, scale), *found, update)) {
      return std::nullopt;
    }
    scaling.scale = scale;
    scaling.instructions.push_back(*found);
  }
  return scaling.instructions.empty() ? std::nullopt : std::optional(scaling);
}

Instruction with_scale(const Instruction& update, const ScaledForm& form, SlotId scale) {
  Instruction made = update;
  made.op = c10::Dispatcher::singleton().findSchemaOrThrow(update.op.schema().name().c_str(),
                                                           form.overload.c_str());
  made.arguments.push_back(Argument::tensor_of(scale));
  const std::vector<SlotId>& gradients = update.arguments[form.gradients].slots;
  made.writes.insert(made.writes.end(), gradients.begin(), gradients.end());
  return made;
}

}  // namespace

StepProgram scale_gradients_in_updates(StepProgram program) {
  const StorageFacts facts(program);
  std::vector<bool> keep(program.instructions.size(), true);
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const ScaledForm* const form = scaled_form(program.instructions[i]);
    if (form == nullptr) {
      continue;
    }
    if (const auto scaling = scaling_of(program, facts, i, form->gradients)) {
      program.instructions[i] = with_scale(program.instructions[i], *form, scaling->scale);
      for (const size_t dropped : scaling->instructions) {
        keep[dropped] = false;
      }
    }
  }
  keep_instructions(program, keep);
  return program;
}

}  // namespace rondo
