#include "tracing/plan/probe.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/view_as_real.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include "backends/generator_state.h"
#include "tracing/plan/arena_layout.h"
#include "tracing/plan/operator_kernels.h"
#include "tracing/plan/plan_memory.h"
#include "tracing/plan/trial.h"
#include "tracing/program/kernels_only.h"

namespace rondo {

namespace {

constexpr int64_t kMostBytes = int64_t{1} << 26;      // of an instruction's tensors together
constexpr int64_t kEnoughNumbers = int64_t{1} << 16;  // results that were compared
constexpr int kMostRounds = 256;  // sums in another order may agree on most short rows
// Long ones seldom agree, and drawing their numbers takes long: these rounds do, once so many
// numbers were drawn.
constexpr int kFewRounds = 8;
constexpr int64_t kManyDrawn = int64_t{1} << 22;

/// One instruction as a program of its own, with slots and storages of its own numbers.
class Excerpt {
 public:
  Excerpt(const StepProgram& program, const Instruction& instruction) : from_(program) {
    Instruction copy = instruction;
    copy.location = 0;
    copy.origin = 0;
    renumber(copy.arguments, SlotKind::Captured);
    renumber(copy.results, SlotKind::Produced);
    for (SlotId& slot : copy.writes) {
      slot = renumbered(slot, SlotKind::Captured);
    }
    program_.instructions.push_back(std::move(copy));
    leave_out_what_comes_before();
  }

  StepProgram& program() { return program_; }

  /// Says what the outcome of a probe depends on.
  std::string text() const {
    std::string text = to_text(program_.instructions.front());
    for (const Slot& slot : program_.slots) {
      text += " " + to_text(slot) + "@" + std::to_string(slot.offset) + "#" +
              std::to_string(slot.storage);
    }
    return text;
  }

 private:
  void renumber(std::vector<Argument>& arguments, SlotKind kind) {
    for (Argument& argument : arguments) {
      for (SlotId& slot : argument.slots) {
        slot = slot == kNoTensor ? kNoTensor : renumbered(slot, kind);
      }
    }
  }

  /// \param kind  of a slot that is not known yet, unless it is a constant
  SlotId renumbered(SlotId old, SlotKind kind) {
    const auto [known, is_new] = slots_.emplace(old, static_cast<SlotId>(program_.slots.size()));
    if (is_new) {
      Slot slot = from_.slots[static_cast<size_t>(old)];
      const auto [storage, is_first] = storages_.emplace(slot.storage, program_.storages);
      program_.storages += is_first ? 1 : 0;
      slot.storage = storage->second;
      if (slot.kind != SlotKind::Constant) {
        // A view of an argument is where the argument is.
        slot.kind = is_first ? kind : kind_of_storage(slot.storage);
        slot.value = at::Tensor();
      }
      program_.slots.push_back(std::move(slot));
    }
    return known->second;
  }

  // A gradient may lie behind those of all other parameters.
  void leave_out_what_comes_before() {
    constexpr int64_t kAlignment = 64;  // bytes; of what is left out, so that nothing else changes
    const auto begin_of = [](const Slot& slot) {
      return slot.offset * static_cast<int64_t>(c10::elementSize(slot.dtype));
    };
    std::map<int32_t, int64_t> begins;
    for (const Slot& slot : program_.slots) {
      int64_t& begin = begins.emplace(slot.storage, begin_of(slot)).first->second;
      begin = std::min(begin, begin_of(slot));
    }
    for (Slot& slot : program_.slots) {
      const int64_t before = begins[slot.storage] / kAlignment * kAlignment;
      slot.offset -= before / static_cast<int64_t>(c10::elementSize(slot.dtype));
    }
  }

  SlotKind kind_of_storage(int32_t storage) const {
    for (const Slot& slot : program_.slots) {
      if (slot.storage == storage) {
        return slot.kind;
      }
    }
    return SlotKind::Produced;
  }

  const StepProgram& from_;
  StepProgram program_;
  std::map<SlotId, SlotId> slots_;
  std::map<int32_t, int32_t> storages_;
};

// New numbers for all the memory of an argument.
void fill(at::Tensor& numbers, at::Generator& generator) {
  if (numbers.is_complex()) {
    at::view_as_real(numbers).normal_(0.0, 1.0, generator);
  } else if (numbers.is_floating_point()) {
    numbers.normal_(0.0, 1.0, generator);
  } else if (numbers.scalar_type() == at::kBool) {
    numbers.random_(0, 2, generator);
  } else if (numbers.scalar_type() == at::kByte) {
    numbers.random_(0, 5, generator);  // routes, of the gradient of a pooling
  } else {
    numbers.zero_();  // the only index that every table has
  }
}

/// Gives every captured slot a value. \return the memory of each; empty when slots of different
/// dtypes share one
std::vector<at::Tensor> give_values(StepProgram& program, const std::vector<int64_t>& bytes) {
  std::map<int32_t, at::Tensor> memories;
  for (Slot& slot : program.slots) {
    if (slot.kind != SlotKind::Captured) {
      continue;
    }
    const auto item = static_cast<int64_t>(c10::elementSize(slot.dtype));
    at::Tensor& memory = memories[slot.storage];
    if (!memory.defined()) {
      memory = at::empty({bytes[static_cast<size_t>(slot.storage)] / item}, slot.dtype);
    }
    if (memory.scalar_type() != slot.dtype) {
      return {};
    }
    slot.value = memory.as_strided(slot.sizes, slot.strides, slot.offset);
    if (slot.is_wrapped_number) {
      slot.value.unsafeGetTensorImpl()->set_wrapped_number(true);
    }
  }
  std::vector<at::Tensor> all;
  for (const auto& memory : memories) {
    all.push_back(memory.second);
  }
  return all;
}

int64_t numbers_in_results(const StepProgram& program) {
  int64_t count = 0;
  const auto add = [&](SlotId id) { count += numel(program.slots[static_cast<size_t>(id)]); };
  for_each_slot(program.instructions.front().results, add);
  const std::vector<SlotId>& writes = program.instructions.front().writes;
  std::for_each(writes.begin(), writes.end(), add);
  return count;
}

/// Results side by side in an arena, all else where its values are.
std::unique_ptr<PlanMemory> memory_of(const StepProgram& program,
                                      const std::vector<int64_t>& bytes) {
  std::vector<Home> homes(bytes.size(), Home::Arena);
  for (const Slot& slot : program.slots) {
    if (slot.kind != SlotKind::Produced) {
      homes[static_cast<size_t>(slot.storage)] = Home::Outside;
    }
  }
  std::vector<ArenaBlock> blocks;
  for (size_t i = 0; i < bytes.size(); ++i) {
    blocks.push_back({homes[i] == Home::Arena ? bytes[i] : 0, 0, 0});
  }
  const ArenaLayout layout = lay_out(blocks);
  return std::make_unique<PlanMemory>(program, homes, layout.offsets, layout.bytes);
}

using MakeKernel = std::function<std::unique_ptr<Kernel>(
    const StepProgram&, const Instruction&, const PlanMemory&)>;

ProbeOutcome compare(const MakeKernel& make, int ulps, StepProgram& program) {
  const KernelsOnly scope;
  const std::vector<int64_t> bytes = bytes_of_storages(program);
  if (std::accumulate(bytes.begin(), bytes.end(), int64_t{0}) > kMostBytes) {
    return ProbeOutcome::Unknown;
  }
  std::vector<at::Tensor> memories = give_values(program, bytes);
  if (memories.empty()) {
    return ProbeOutcome::Unknown;
  }
  const Instruction& instruction = program.instructions.front();
  const std::unique_ptr<PlanMemory> memory = memory_of(program, bytes);
  const std::unique_ptr<Kernel> kernel = make(program, instruction, *memory);
  Trial trial(instruction, *memory, ulps);
  at::Generator generator = at::detail::createCPUGenerator(/*seed_val=*/1);
  const SeededGenerator of_operator(/*seed=*/1);
  const int64_t numbers = std::max<int64_t>(numbers_in_results(program), 1);
  const int64_t drawn = std::accumulate(
      memories.begin(), memories.end(), int64_t{0}, [](int64_t sum, const at::Tensor& argument) {
        return sum + argument.numel();
      });
  const auto has_seen_enough = [&](int64_t rounds) {
    return rounds >= kMostRounds || rounds * numbers >= kEnoughNumbers ||
           (rounds >= kFewRounds && rounds * drawn >= kManyDrawn);
  };
  bool agrees = true;
  for (int64_t round = 0; agrees && !has_seen_enough(round); ++round) {
    for (at::Tensor& argument : memories) {
      fill(argument, generator);
    }
    agrees = trial.passes(*kernel);
  }
  return agrees ? ProbeOutcome::Agrees : ProbeOutcome::Differs;
}

ProbeOutcome outcome_of(const MakeKernel& make, int ulps, StepProgram& program) {
  try {
    return compare(make, ulps, program);
  } catch (const std::exception&) {
    return ProbeOutcome::Unknown;  // the operator takes no random numbers, or memory is short
  }
}

/// \param kernel  tells kernels for the same instruction apart
ProbeOutcome remembered(const std::string& kernel,
                        const MakeKernel& make,
                        int ulps,
                        const StepProgram& program,
                        const Instruction& instruction) {
  static std::mutex mutex;
  static std::map<std::string, ProbeOutcome> known;
  Excerpt excerpt(program, instruction);
  const std::string key =
      kernel + " " + std::to_string(at::get_num_threads()) + " " + excerpt.text();
  const std::lock_guard lock(mutex);
  const auto found = known.find(key);
  if (found != known.end()) {
    return found->second;
  }
  return known.emplace(key, outcome_of(make, ulps, excerpt.program())).first->second;
}

}  // namespace

ProbeOutcome probe(const OwnKernel& own,
                   const StepProgram& program,
                   const Instruction& instruction) {
  const std::string kernel = std::to_string(reinterpret_cast<uintptr_t>(own.make));
  return remembered(kernel, own.make, own.ulps, program, instruction);
}

ProbeOutcome probe(const c10::OperatorHandle& out,
                   const StepProgram& program,
                   const Instruction& instruction) {
  const MakeKernel make = [&](const StepProgram&,
                              const Instruction& excerpt,
                              const PlanMemory& memory) { return call_out(excerpt, out, memory); };
  return remembered("out", make, /*ulps=*/0, program, instruction);
}

const OwnKernel* find_own_kernel(const StepProgram& program,
                                 const Instruction& instruction,
                                 bool exact) {
  for (const OwnKernel& own : own_kernels()) {
    const bool is_admitted = own.ulps == 0 || !exact;
    if (is_admitted && operator_name(instruction.op) == own.op &&
        is_on(program, instruction, own.device) && own.accepts(program, instruction) &&
        (own.ulps > 0 || probe(own, program, instruction) != ProbeOutcome::Differs)) {
      return &own;
    }
  }
  return nullptr;
}

}  // namespace rondo
