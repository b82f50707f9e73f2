#include <ATen/core/Reduction.h>

#include <optional>

#include "tracing/passes/passes.h"
#include "tracing/program/arguments.h"
#include "tracing/program/storages.h"

namespace rondo {

namespace {

bool has_labels_of(const StepProgram& program, const Instruction& loss_backward) {
  const Slot* const labels = slot_at(program, loss_backward.arguments, 2);
  return labels != nullptr && labels->dtype == at::kLong && labels->sizes.size() == 1;
}

// nll_loss_backward(gradient, logarithms, labels, no weights, mean, ignored, weight), and then
// _log_softmax_backward_data(of it, logarithms, dim, dtype).
bool fit(const StepProgram& program,
         const Instruction& loss_backward,
         const Instruction& softmax_backward) {
  if (!has_name(loss_backward, "aten::nll_loss_backward") ||
      !has_name(softmax_backward, "aten::_log_softmax_backward_data") ||
      id_at(softmax_backward.arguments, 0) != id_at(loss_backward.results, 0) ||
      id_at(softmax_backward.arguments, 1) != id_at(loss_backward.arguments, 1)) {
    return false;
  }
  const Slot& logarithms = slot_of(program, id_at(softmax_backward.arguments, 1));
  const int64_t dim = softmax_backward.arguments[2].constant.toInt();
  return is_plain_float(&logarithms) && logarithms.sizes.size() == 2 && (dim == 1 || dim == -1) &&
         slot_of(program, id_at(softmax_backward.results, 0)).dtype == at::kFloat &&
         has_labels_of(program, loss_backward) && is_none(loss_backward.arguments[3]) &&
         is_constant(loss_backward.arguments[4], at::Reduction::Mean);
}

// The instruction that reads what `maker` made, when it is the only one and nothing else sees it.
std::optional<size_t> only_reader(const StepProgram& program,
                                  const StorageFacts& facts,
                                  size_t maker) {
  const size_t storage = storage_of(program, id_at(program.instructions[maker].results, 0));
  if (facts.escapes[storage]) {
    return std::nullopt;
  }
  std::optional<size_t> reader;
  for (size_t i = maker + 1; i < program.instructions.size(); ++i) {
    if (any_in_storage(program, program.instructions[i].arguments, storage)) {
      if (reader) {
        return std::nullopt;
      }
      reader = i;
    }
  }
  return reader;
}

bool arguments_stay(const StepProgram& program,
                    const StorageFacts& facts,
                    size_t loss_backward,
                    size_t softmax_backward) {
  bool stay = true;
  for_each_slot(program.instructions[loss_backward].arguments, [&](SlotId slot) {
    stay = stay && !facts.is_written(storage_of(program, slot), loss_backward, softmax_backward);
  });
  return stay;
}

Instruction fused(const Instruction& loss_backward, const Instruction& softmax_backward) {
  const std::vector<Argument>& of_loss = loss_backward.arguments;
  Instruction made = softmax_backward;
  made.op = c10::Dispatcher::singleton().findSchemaOrThrow("rondo::cross_entropy_backward", "");
  made.arguments = {of_loss[0], of_loss[1], of_loss[2], of_loss[5], of_loss[6]};
  return made;
}

}  // namespace

StepProgram fuse_cross_entropy_backward(StepProgram program) {
  const StorageFacts facts(program);
  std::vector<bool> keep(program.instructions.size(), true);
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    if (!has_name(program.instructions[i], "aten::nll_loss_backward")) {
      continue;
    }
    const auto reader = only_reader(program, facts, i);
    if (reader && fit(program, program.instructions[i], program.instructions[*reader]) &&
        arguments_stay(program, facts, i, *reader)) {
      program.instructions[*reader] = fused(program.instructions[i], program.instructions[*reader]);
      keep[i] = false;
    }
  }
  keep_instructions(program, keep);
  return program;
}

}  // namespace rondo
