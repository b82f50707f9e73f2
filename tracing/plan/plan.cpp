#include "tracing/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "tracing/kernels/own_kernels.h"
#include "tracing/passes/passes.h"
#include "tracing/plan/arena_layout.h"
#include "tracing/plan/chains.h"
#include "tracing/plan/guard_kernels.h"
#include "tracing/plan/operator_kernels.h"
#include "tracing/plan/out_variant.h"
#include "tracing/plan/probe.h"
#include "tracing/program/storages.h"

namespace rondo {

namespace {

std::vector<SlotId> tensors_of(const std::vector<Result>& results) {
  std::vector<SlotId> slots;
  for_each_slot(results, [&](SlotId slot) { slots.push_back(slot); });
  return slots;
}

// By storage, not by schema: `_unsafe_view` claims fresh memory, `reshape` may return either.
bool is_view(const StepProgram& program, const Instruction& instruction) {
  const std::vector<SlotId> results = tensors_of(instruction.results);
  return is_pure(instruction) && !results.empty() &&
         std::all_of(results.begin(), results.end(), [&](SlotId slot) {
           return any_in_storage(program, instruction.arguments, storage_of(program, slot));
         });
}

bool is_undefined(const Result& result) {
  return result.kind != Argument::Kind::Tensor || result.slots[0] == kNoTensor;
}

int trials_after(ProbeOutcome outcome) {
  return outcome == ProbeOutcome::Agrees ? 1 : kTrials;
}

// Works in the order in which decisions depend on each other: how each instruction is run, then
// where each storage lives, then the kernels bound to that memory.
class Planner {
 public:
  Planner(StepProgram program, const PlanOptions& options) : options_(options) {
    plan_.program = std::move(program);
  }

  Plan make() {
    for (size_t i = 0; i < program().instructions.size(); ++i) {
      owns_.push_back(own_kernel_of(i));
      plan_.lowerings.push_back(lowering_of(i));
    }
    find_homes();
    find_lives();
    if (options_.in_place) {
      replace_dying_arguments();
    }
    lay_out_arena();
    make_kernels();
    if (options_.chains) {
      find_chains(plan_);
    }
    return std::move(plan_);
  }

 private:
  const StepProgram& program() const { return plan_.program; }

  std::vector<PlannedStorage>& storages() { return plan_.storages; }

  bool needs_nothing(const Instruction& instruction) const {
    return instruction.is_allocation || is_view(program(), instruction);
  }

  const OwnKernel* own_kernel_of(size_t index) const {
    const Instruction& instruction = program().instructions[index];
    return needs_nothing(instruction) ? nullptr
                                      : find_own_kernel(program(), instruction, options_.exact);
  }

  Lowering lowering_of(size_t index) const {
    const Instruction& instruction = program().instructions[index];
    if (needs_nothing(instruction)) {
      return Lowering::Nothing;
    }
    if (owns_[index] != nullptr) {
      return Lowering::Own;
    }
    if (new_memory_of(index).empty()) {
      return is_guard(instruction) ? Lowering::Guard : Lowering::InPlace;
    }
    // Random numbers cannot be drawn twice, which comparing with the operator would.
    const bool can_write_out =
        is_pure(instruction) &&
        std::none_of(instruction.results.begin(), instruction.results.end(), is_undefined);
    const auto out = can_write_out ? find_out_variant(instruction.op) : std::nullopt;
    return out && probe(*out, program(), instruction) != ProbeOutcome::Differs ? Lowering::Out
                                                                               : Lowering::Adopting;
  }

  void find_homes() {
    for (const int64_t bytes : bytes_of_storages(program())) {
      PlannedStorage storage;
      storage.bytes = bytes;
      storage.memory = storages().size();
      storages().push_back(storage);
    }
    for (const Slot& slot : program().slots) {
      if (slot.kind != SlotKind::Produced) {
        storages()[static_cast<size_t>(slot.storage)].home =
            slot.kind == SlotKind::Input ? Home::Batch : Home::Outside;
      }
    }
    for (size_t i = 0; i < program().instructions.size(); ++i) {
      if (plan_.lowerings[i] == Lowering::Adopting) {
        for (const SlotId slot : new_memory_of(i)) {
          storages()[storage_of(program(), slot)].home = Home::Adopted;
        }
      }
    }
  }

  // The first result of each storage that the instruction makes.
  std::vector<SlotId> new_memory_of(size_t index) const {
    const Instruction& instruction = program().instructions[index];
    std::vector<SlotId> made;
    for (const SlotId slot : tensors_of(instruction.results)) {
      const size_t storage = storage_of(program(), slot);
      const bool is_known = std::any_of(made.begin(), made.end(), [&](SlotId other) {
        return storage_of(program(), other) == storage;
      });
      if (!is_known && !any_in_storage(program(), instruction.arguments, storage)) {
        made.push_back(slot);
      }
    }
    return made;
  }

  void find_lives() {
    const StorageFacts facts(program());
    const size_t end = program().instructions.size();
    for (size_t i = 0; i < end; ++i) {
      const auto touch = [&](SlotId slot) {
        PlannedStorage& storage = storages()[storage_of(program(), slot)];
        storage.first = std::min(storage.first, i);
        storage.last = i;
      };
      for_each_slot(program().instructions[i].arguments, touch);
      for_each_slot(program().instructions[i].results, touch);
    }
    for (size_t i = 0; i < storages().size(); ++i) {
      if (facts.escapes[i]) {
        storages()[i].last = end;
      }
    }
  }

  // A result takes the place of an argument that nothing needs any more.
  void replace_dying_arguments() {
    for (size_t i = 0; i < program().instructions.size(); ++i) {
      const Instruction& instruction = program().instructions[i];
      if (owns_[i] != nullptr && owns_[i]->in_place) {
        for_each_slot(instruction.arguments, [&](SlotId argument) {
          if (is_alone_in_memory(instruction, argument)) {
            replace(argument, instruction.results[0].slots[0], i);
          }
        });
      }
    }
  }

  // Another part of the argument, or another order of its elements, would be read after it was
  // written over: a - a.select(0, 0).
  bool is_alone_in_memory(const Instruction& instruction, SlotId argument) const {
    const Slot& slot = slot_of(program(), argument);
    bool is_alone = true;
    for_each_slot(instruction.arguments, [&](SlotId id) {
      const Slot& other = slot_of(program(), id);
      const bool is_same = other.dtype == slot.dtype && other.offset == slot.offset &&
                           other.sizes == slot.sizes && other.strides == slot.strides;
      is_alone = is_alone && (other.storage != slot.storage || is_same);
    });
    return is_alone;
  }

  void replace(SlotId argument, SlotId result, size_t moment) {
    const Slot& from = slot_of(program(), argument);
    const Slot& to = slot_of(program(), result);
    PlannedStorage& made = storages()[storage_of(program(), result)];
    PlannedStorage& dying = storages()[storages()[storage_of(program(), argument)].memory];
    const bool is_free = made.memory == storage_of(program(), result) && made.first == moment &&
                         dying.last == moment && &made != &dying;
    const bool fits = made.home == Home::Arena && dying.home == Home::Arena &&
                      made.bytes == dying.bytes && from.dtype == to.dtype &&
                      from.offset == to.offset && from.sizes == to.sizes &&
                      from.strides == to.strides;
    if (is_free && fits) {
      made.memory = dying.memory;
      dying.last = made.last;
      ++plan_.written_over;
    }
  }

  void lay_out_arena() {
    std::vector<ArenaBlock> blocks;
    std::vector<size_t> owners;
    std::vector<Home> homes;
    for (size_t i = 0; i < storages().size(); ++i) {
      const PlannedStorage& storage = storages()[i];
      homes.push_back(storage.home);
      const bool is_placed = storage.memory == i && storage.first != kNeverUsed;
      if (storage.home == Home::Arena && is_placed) {
        blocks.push_back({storage.bytes, storage.first, storage.last});
        owners.push_back(i);
      }
    }
    const ArenaLayout layout = lay_out(blocks);
    std::vector<int64_t> offsets(storages().size(), 0);
    for (size_t i = 0; i < owners.size(); ++i) {
      offsets[owners[i]] = layout.offsets[i];
    }
    for (size_t i = 0; i < offsets.size(); ++i) {
      offsets[i] = offsets[storages()[i].memory];
    }
    plan_.memory = std::make_unique<PlanMemory>(program(), homes, offsets, layout.bytes);
  }

  void make_kernels() {
    const std::vector<DueSet> users = find_users(program());
    for (size_t i = 0; i < program().instructions.size(); ++i) {
      if (plan_.lowerings[i] != Lowering::Nothing) {
        PlannedInstruction planned = make_kernel(i);
        planned.users = users[i];
        plan_.instructions.push_back(std::move(planned));
      }
      release_after(i);
    }
  }

  PlannedInstruction make_kernel(size_t index) {
    const Instruction& instruction = program().instructions[index];
    PlannedInstruction planned;
    planned.index = index;
    planned.lowering = plan_.lowerings[index];
    switch (planned.lowering) {
      case Lowering::Own: {
        const OwnKernel& own = *owns_[index];
        planned.kernel = own.make(program(), instruction, *plan_.memory);
        planned.trial = std::make_unique<Trial>(instruction, *plan_.memory, own.ulps);
        planned.trials = trials_after(probe(own, program(), instruction));
        break;
      }
      case Lowering::Out: {
        const c10::OperatorHandle out = *find_out_variant(instruction.op);
        planned.kernel = call_out(instruction, out, *plan_.memory);
        planned.trial = std::make_unique<Trial>(instruction, *plan_.memory, 0);
        planned.trials = trials_after(probe(out, program(), instruction));
        break;
      }
      case Lowering::Adopting:
        planned.kernel = adopting_call(index);
        break;
      case Lowering::Guard:
        planned.kernel = compare_answer(instruction, *plan_.memory);
        break;
      case Lowering::InPlace:
        planned.kernel = call_in_place(instruction, *plan_.memory);
        if (takes_out(instruction.op) && !instruction.is_opaque && !instruction.results.empty()) {
          planned.trial = std::make_unique<Trial>(instruction, *plan_.memory, 0);
          planned.trials = 1;  // of what it does to its tensors; the arithmetic is the operator's
        }
        break;
      case Lowering::Nothing:
      case Lowering::Copying:
        planned.kernel = call_in_place(instruction, *plan_.memory);
        break;
    }
    return planned;
  }

  std::unique_ptr<Kernel> adopting_call(size_t index) {
    const std::vector<SlotId> made = new_memory_of(index);
    for (const SlotId slot : made) {
      releases_[storages()[storage_of(program(), slot)].last].push_back(slot);
    }
    const Instruction& instruction = program().instructions[index];
    return is_guard(instruction) ? compare_sizes_and_adopt(instruction, made, *plan_.memory)
                                 : call_and_adopt(instruction, made, *plan_.memory);
  }

  void release_after(size_t index) {
    const auto due = releases_.find(index);
    if (due == releases_.end() || plan_.instructions.empty()) {
      return;
    }
    auto& releases = plan_.instructions.back().releases;
    releases.insert(releases.end(), due->second.begin(), due->second.end());
  }

  Plan plan_;
  PlanOptions options_;
  std::vector<const OwnKernel*> owns_;              // one an instruction; null: none
  std::map<size_t, std::vector<SlotId>> releases_;  // by the last instruction that needs them
};

}  // namespace

const char* to_string(Lowering lowering) {
  switch (lowering) {
    case Lowering::Nothing:
      return "nothing";
    case Lowering::Own:
      return "own";
    case Lowering::Out:
      return "out";
    case Lowering::InPlace:
      return "in place";
    case Lowering::Guard:
      return "guard";
    case Lowering::Adopting:
      return "adopting";
    case Lowering::Copying:
      return "copying";
  }
  return "";
}

PlanOptions plan_options(bool exact, const std::vector<std::string>& without_passes) {
  const auto runs = [&](const char* pass) {
    return std::find(without_passes.begin(), without_passes.end(), pass) == without_passes.end();
  };
  return {exact, runs(kChainsPass), runs(kInPlacePass)};
}

Plan make_plan(StepProgram program, const PlanOptions& options) {
  return Planner(std::move(program), options).make();
}

/// The memory map: where each block of the arena lies, and between which instructions it is in use.
/// The board draws it (`board/web/src/step_file.ts`).
std::string arena_text(const Plan& plan) {
  std::string text;
  for (size_t i = 0; i < plan.storages.size(); ++i) {
    const PlannedStorage& storage = plan.storages[i];
    if (storage.home == Home::Arena && storage.memory == i && storage.first != kNeverUsed) {
      const size_t last = std::min(storage.last, plan.program.instructions.size() - 1);
      text += fmt::format("  block at {}: {} bytes, instructions {} to {}\n",
                          plan.memory->arena_offset(i),
                          storage.bytes,
                          storage.first,
                          last);
    }
  }
  return text;
}

std::string to_text(const Plan& plan) {
  std::map<std::string, int> counts;
  std::string lines;
  size_t chained = 0;
  for (const PlannedInstruction& planned : plan.instructions) {
    const std::string how = to_string(planned.lowering);
    chained += planned.chain > 1 ? planned.chain : 0;
    ++counts[how];
    lines += "  " + how + std::string(std::max<size_t>(how.size(), 10) - how.size(), ' ') +
             to_text(plan.program.instructions[planned.index]) + '\n';
  }
  std::string text = "plan\n  arena: " + std::to_string(plan.memory->arena_bytes()) + " bytes\n";
  for (const auto& [how, count] : counts) {
    text += "  " + how + ": " + std::to_string(count) + " instructions\n";
  }
  if (plan.written_over > 0) {
    text += "  written over an argument: " + std::to_string(plan.written_over) + " results\n";
  }
  if (plan.chains > 0) {
    text += "  run part by part: " + std::to_string(chained) + " instructions, in " +
            std::to_string(plan.chains) + " chains\n";
  }
  return text + arena_text(plan) + lines;
}

}  // namespace rondo
