#include "tracing/plan/undo.h"

#include <ATen/ops/empty_like.h>

#include <set>

#include "backends/generator_state.h"
#include "tracing/passes/kept_casts.h"
#include "tracing/program/guards.h"
#include "tracing/program/storages.h"

namespace rondo {

Undo::Undo(const Plan& plan) {
  const std::vector<Instruction>& instructions = plan.program.instructions;
  size_t end = instructions.size();
  while (end > 0 && !is_guard(instructions[end - 1])) {
    --end;
  }
  std::set<SlotId> written;
  for (size_t i = 0; i < end; ++i) {
    draws_random_ = draws_random_ || instructions[i].draws_random;
    for (const SlotId slot : instructions[i].writes) {
      // A kept cast counts for nothing until its step is done.
      const bool is_cast = KeptCasts::is_kept(slot_of(plan.program, slot));
      if (is_outside(plan.memory->home(slot)) && !is_cast && written.insert(slot).second) {
        const at::Tensor& tensor = plan.memory->tensor(slot);
        copies_.emplace_back(tensor, at::empty_like(tensor));
      }
    }
  }
}

void Undo::begin() {
  for (auto& [tensor, copy] : copies_) {
    copy.copy_(tensor);
  }
  if (draws_random_) {
    generator_ = generator_state();
  }
}

void Undo::put_back() const {
  for (const auto& [tensor, copy] : copies_) {
    tensor.copy_(copy);
  }
  if (draws_random_) {
    set_generator_state(generator_);
  }
}

int64_t Undo::bytes() const {
  int64_t bytes = 0;
  for (const auto& tensor_and_copy : copies_) {
    bytes += static_cast<int64_t>(tensor_and_copy.second.nbytes());
  }
  return bytes;
}

}  // namespace rondo
