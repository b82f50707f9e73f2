#include "tracing/plan/chains.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/parallel.h"
#include "tracing/program/storages.h"

namespace rondo {

namespace {

// Elements of a part, a multiple of 16: a few tensors of that many fit into the first cache.
constexpr int64_t kPart = 4096;

ElementwiseKernel* elementwise(const PlannedInstruction& planned) {
  return planned.lowering == Lowering::Own ? dynamic_cast<ElementwiseKernel*>(planned.kernel.get())
                                           : nullptr;
}

/// Where a tensor lies: at an address that is known, or else in a storage of its own.
struct Place {
  int32_t storage;
  int64_t begin;  // an address, or bytes from the storage's start
  int64_t bytes;
  int64_t item;
  bool is_fixed;
};

Place place_of(const Plan& plan, SlotId id) {
  const Slot& slot = slot_of(plan.program, id);
  const Home home = plan.storages[static_cast<size_t>(slot.storage)].home;
  const auto item = static_cast<int64_t>(c10::elementSize(slot.dtype));
  const int64_t offset = slot.offset * item;
  const bool is_fixed = home == Home::Arena || home == Home::Outside;
  return {slot.storage,
          is_fixed ? reinterpret_cast<int64_t>(plan.memory->operand(id).as<char>()) : offset,
          extent_of(slot) - offset,
          item,
          is_fixed};
}

/// True when one may read or write an element of the other's at another time than its own.
bool is_in_the_way(const Place& a, const Place& b) {
  const bool is_comparable = a.is_fixed ? b.is_fixed : !b.is_fixed && a.storage == b.storage;
  if (!is_comparable) {
    return false;
  }
  const bool is_apart = a.begin + a.bytes <= b.begin || b.begin + b.bytes <= a.begin;
  const bool is_same = a.begin == b.begin && a.bytes == b.bytes && a.item == b.item;
  return !is_apart && !is_same;
}

/// The memory that an instruction touches, what it writes first.
struct Touched {
  std::vector<Place> written;
  std::vector<Place> read;
};

Touched touched_by(const Plan& plan, const Instruction& instruction) {
  Touched touched;
  for_each_slot(instruction.results,
                [&](SlotId slot) { touched.written.push_back(place_of(plan, slot)); });
  for (const SlotId slot : instruction.writes) {
    touched.written.push_back(place_of(plan, slot));
  }
  for_each_slot(instruction.arguments,
                [&](SlotId slot) { touched.read.push_back(place_of(plan, slot)); });
  return touched;
}

bool any_in_the_way(const std::vector<Place>& all, const std::vector<Place>& others) {
  return std::any_of(all.begin(), all.end(), [&](const Place& a) {
    return std::any_of(
        others.begin(), others.end(), [&](const Place& b) { return is_in_the_way(a, b); });
  });
}

bool can_follow(const Touched& before, const Touched& after) {
  return !any_in_the_way(before.written, after.written) &&
         !any_in_the_way(before.written, after.read) && !any_in_the_way(before.read, after.written);
}

/// How many instructions from `first` on can be run together.
size_t chain_from(const Plan& plan, size_t first) {
  const PlannedInstruction& head = plan.instructions[first];
  const ElementwiseKernel* const kernel = elementwise(head);
  if (kernel == nullptr || kernel->elements() < 2 * kPart) {
    return 1;
  }
  std::vector<Touched> chain = {touched_by(plan, plan.program.instructions[head.index])};
  for (size_t i = first + 1; i < plan.instructions.size(); ++i) {
    const PlannedInstruction& next = plan.instructions[i];
    const ElementwiseKernel* const other = elementwise(next);
    if (other == nullptr || other->elements() != kernel->elements() || next.users != head.users) {
      break;
    }
    Touched touched = touched_by(plan, plan.program.instructions[next.index]);
    const auto lets_follow = [&](const Touched& before) { return can_follow(before, touched); };
    if (!std::all_of(chain.begin(), chain.end(), lets_follow)) {
      break;
    }
    chain.push_back(std::move(touched));
  }
  return chain.size();
}

}  // namespace

void find_chains(Plan& plan) {
  for (size_t i = 0; i < plan.instructions.size(); i += plan.instructions[i].chain) {
    plan.instructions[i].chain = chain_from(plan, i);
    plan.chains += plan.instructions[i].chain > 1 ? 1 : 0;
  }
}

bool is_settled_chain(const PlannedInstruction* first) {
  return std::all_of(first, first + first->chain, [](const PlannedInstruction& planned) {
    return planned.trial == nullptr && planned.lowering == Lowering::Own;
  });
}

void run_chain(PlannedInstruction* first) {
  PlannedInstruction* const end = first + first->chain;
  const auto kernel_of = [](const PlannedInstruction& planned) {
    return static_cast<ElementwiseKernel*>(planned.kernel.get());
  };
  const int64_t elements = kernel_of(*first)->elements();
  const int64_t parts = (elements + kPart - 1) / kPart;
  parallel_for_each(parts, kPart, [&](int64_t part) {
    const int64_t begin = part * kPart;
    for (PlannedInstruction* planned = first; planned != end; ++planned) {
      kernel_of(*planned)->run_part(begin, std::min(kPart, elements - begin));
    }
  });
}

}  // namespace rondo
