#include <algorithm>
#include <optional>
#include <string>

#include "tracing/passes/passes.h"
#include "tracing/program/storages.h"

namespace rondo {

namespace {

bool is_sum(const Instruction& instruction) {
  return has_name(instruction, "aten::add.Tensor");
}

bool adds(const Instruction& instruction) {
  return is_sum(instruction) || has_name(instruction, "aten::add_.Tensor");
}

// copy_(target, product), add_(target, product) or add(target, product), with both in one order of
// elements.
bool takes_product(const StepProgram& program, const Instruction& instruction) {
  const bool is_plain_sum =
      adds(instruction) && instruction.arguments[2].constant.toScalar().equal(1);
  if ((!has_name(instruction, "aten::copy_") && !is_plain_sum) ||
      instruction.arguments[1].kind != Argument::Kind::Tensor) {
    return false;
  }
  const Slot& target = slot_of(program, instruction.arguments[0].slots[0]);
  const Slot& source = slot_of(program, instruction.arguments[1].slots[0]);
  return target.dtype == source.dtype && target.sizes == source.sizes &&
         target.strides == source.strides;
}

// The one instruction that uses the storage of a product, when it may do so at once.
std::optional<size_t> taker_of(const StepProgram& program,
                               const StorageFacts& facts,
                               size_t product) {
  const SlotId result = program.instructions[product].results[0].slots[0];
  const size_t storage = storage_of(program, result);
  if (facts.escapes[storage] || facts.is_external[storage]) {
    return std::nullopt;
  }
  std::optional<size_t> taker;
  for (size_t i = product + 1; i < program.instructions.size(); ++i) {
    const bool uses = any_in_storage(program, program.instructions[i].arguments, storage);
    if (uses && taker) {
      return std::nullopt;
    }
    taker = uses ? std::optional(i) : taker;
  }
  const bool is_taken = taker && takes_product(program, program.instructions[*taker]) &&
                        program.instructions[*taker].arguments[1].slots[0] == result;
  return is_taken ? taker : std::nullopt;
}

bool is_free_between(const StepProgram& program, const Slot& slot, size_t from, size_t to) {
  for (size_t i = from; i < to; ++i) {
    if (touches(program, program.instructions[i], slot)) {
      return false;
    }
  }
  return true;
}

Instruction into_place(const Instruction& product, const Instruction& taker) {
  const SlotId target = taker.arguments[0].slots[0];
  Instruction made{c10::Dispatcher::singleton().findSchemaOrThrow("rondo::mm_to_", ""),
                   {Argument::tensor_of(target),
                    product.arguments[0],
                    product.arguments[1],
                    Argument::constant_of(adds(taker))},
                   {},
                   {target}};
  made.location = taker.location;
  made.origin = product.origin;
  return made;
}

// Whether nothing needs a term of a sum behind the sum, which may take its place then.
bool dies_in_sum(const StepProgram& program, const StorageFacts& facts, SlotId term, size_t sum) {
  const size_t storage = storage_of(program, term);
  const Slot& result = slot_of(program, program.instructions[sum].results[0].slots[0]);
  const Slot& slot = slot_of(program, term);
  if (facts.is_external[storage] || facts.escapes[storage] || result.offset != slot.offset ||
      result.sizes != slot.sizes || result.strides != slot.strides) {
    return false;
  }
  const auto first = program.instructions.begin() + static_cast<std::ptrdiff_t>(sum) + 1;
  return std::none_of(first, program.instructions.end(), [&](const Instruction& later) {
    return touches(program, later, slot);
  });
}

}  // namespace

StepProgram put_products_in_place(StepProgram program) {
  StorageFacts facts(program);
  std::vector<bool> keep(program.instructions.size(), true);
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    if (!has_name(program.instructions[i], "aten::mm")) {
      continue;
    }
    const auto taker = taker_of(program, facts, i);
    if (!taker) {
      continue;
    }
    const Instruction sum_or_copy = program.instructions[*taker];
    const SlotId target = sum_or_copy.arguments[0].slots[0];
    const bool makes_sum = is_sum(sum_or_copy);
    if (!is_free_between(program, slot_of(program, target), i, *taker) ||
        (makes_sum && !dies_in_sum(program, facts, target, *taker))) {
      continue;
    }
    program.instructions[i] = into_place(program.instructions[i], sum_or_copy);
    keep[*taker] = false;
    if (makes_sum) {
      const SlotId sum = sum_or_copy.results[0].slots[0];
      facts.escapes[storage_of(program, target)] = facts.escapes[storage_of(program, sum)];
      replace_slot(program, sum, target);
    }
  }
  keep_instructions(program, keep);
  return program;
}

}  // namespace rondo
