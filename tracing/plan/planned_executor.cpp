#include "tracing/plan/planned_executor.h"

#include <algorithm>
#include <exception>
#include <map>

#include "backends/generator_state.h"
#include "core/error.h"
#include "tracing/plan/chains.h"
#include "tracing/plan/guard_kernels.h"
#include "tracing/plan/put_back.h"
#include "tracing/program/guards.h"
#include "tracing/program/kernels_only.h"

namespace rondo {

namespace {

// What a step gave is valid until the next one begins: a lambda that kept a tensor reads numbers of
// another step then. Builds that look for mistakes let it read NaN.
#if !defined(NDEBUG) || defined(__SANITIZE_ADDRESS__)
constexpr bool kPoisonsArena = true;
#else
constexpr bool kPoisonsArena = false;
#endif

void release(const PlannedInstruction& planned, PlanMemory& memory) {
  for (const SlotId slot : planned.releases) {
    memory.release(slot);
  }
}

}  // namespace

PlannedExecutor::PlannedExecutor(StepProgram program,
                                 TextLog log,
                                 const PlanOptions& options,
                                 const TimingSchedule& timing)
    : plan_(make_plan(std::move(program), options)),
      log_(std::move(log)),
      memory_(memory_of(plan_)),
      undo_(plan_),
      stopwatch_(plan_.instructions.size(), timing),
      on_trial_(std::count_if(
          plan_.instructions.begin(),
          plan_.instructions.end(),
          [](const PlannedInstruction& planned) { return planned.trial != nullptr; })) {
  memory_.arena += undo_.bytes();
  for (const auto& output : plan_.program.outputs) {
    add_result(output.second);
  }
  for (const ClosureOutput& closure : plan_.program.closures) {
    std::for_each(
        closure.tensors.begin(), closure.tensors.end(), [this](SlotId slot) { add_result(slot); });
  }
}

PassCounts PlannedExecutor::applied() const {
  return {{kChainsPass, plan_.chains}, {kInPlacePass, plan_.written_over}};
}

OperatorCounts PlannedExecutor::adopted_operators() const {
  std::map<std::string, int64_t> counts;
  for (const PlannedInstruction& planned : plan_.instructions) {
    if (planned.lowering == Lowering::Adopting) {
      ++counts[operator_name(plan_.program.instructions[planned.index].op)];
    }
  }
  return {counts.begin(), counts.end()};
}

void PlannedExecutor::add_result(SlotId slot) {
  const auto is_of_batch = [&](const Slot& other) {
    return other.kind == SlotKind::Input &&
           other.storage == plan_.program.slots[static_cast<size_t>(slot)].storage;
  };
  if (std::any_of(plan_.program.slots.begin(), plan_.program.slots.end(), is_of_batch)) {
    parts_of_batch_.emplace_back(results_.size(), slot);
  }
  results_.push_back(plan_.memory->tensor(slot));
}

const std::vector<at::Tensor>& PlannedExecutor::run(const Batch& batch, DueSet due) {
  stopwatch_.start();  // the first instruction's time takes in what is done before it
  const KernelsOnly scope;
  begin(batch);
  PlannedInstruction* const begin = plan_.instructions.data();
  PlannedInstruction* const end = begin + plan_.instructions.size();
  PlannedInstruction* planned = begin;
  try {
    while (planned != end) {
      size_t done = 1;
      if ((planned->users & due) != 0) {
        done = run_from(planned);
        stopwatch_.lap(static_cast<size_t>(planned - begin));
      } else {
        release(*planned, *plan_.memory);
      }
      planned += done;
    }
  } catch (GuardFailed& failed) {
    undo(*planned, std::move(failed.answer));
    return results_;
  } catch (const std::exception&) {
    throw_failed(*planned);
  }
  stopwatch_.stop();
  keep_parts_of_batch();
  return results_;
}

bool PlannedExecutor::start(const Batch& batch, DueSet due) {
  begin(batch);
  next_ = 0;
  due_ = due;
  return true;
}

const std::vector<at::Tensor>* PlannedExecutor::advance(const Deadline& deadline) {
  const KernelsOnly scope;
  try {
    while (next_ < plan_.instructions.size()) {
      PlannedInstruction& planned = plan_.instructions[next_++];
      if ((planned.users & due_) == 0) {
        release(planned, *plan_.memory);
        continue;
      }
      run_one(planned);
      if (std::chrono::steady_clock::now() >= deadline) {
        break;
      }
    }
  } catch (GuardFailed& failed) {
    undo(plan_.instructions[next_ - 1], std::move(failed.answer));
    return nullptr;
  } catch (const std::exception&) {
    throw_failed(plan_.instructions[next_ - 1]);
  }
  if (next_ < plan_.instructions.size()) {
    return nullptr;
  }
  keep_parts_of_batch();
  return &results_;
}

// How many instructions were run: all of a chain, or one.
inline size_t PlannedExecutor::run_from(PlannedInstruction* planned) {
  if (planned->chain == 1 || !is_settled_chain(planned)) {
    run_one(*planned);
    return 1;
  }
  run_chain(planned);
  for (size_t i = 0; i < planned->chain; ++i) {
    release(planned[i], *plan_.memory);
  }
  return planned->chain;
}

inline void PlannedExecutor::run_one(PlannedInstruction& planned) {
  if (planned.trial != nullptr) {
    try_kernel(planned, Trial::Effect::Kept);
  } else {
    planned.kernel->run();
  }
  release(planned, *plan_.memory);
}

void PlannedExecutor::undo(const PlannedInstruction& guard, std::string answer) {
  const auto begin = plan_.program.instructions.begin();
  const auto place = begin + static_cast<std::ptrdiff_t>(guard.index);
  missed_ =
      MissedGuard{static_cast<size_t>(std::count_if(begin, place, &is_guard)), std::move(answer)};
  undo_.put_back();
  release_all();
}

void PlannedExecutor::release_all() {
  for (const PlannedInstruction& planned : plan_.instructions) {
    release(planned, *plan_.memory);
  }
}

// Within a handler: the exception becomes the cause of one that says where it was thrown.
void PlannedExecutor::throw_failed(const PlannedInstruction& planned) const {
  const Instruction& instruction = plan_.program.instructions[planned.index];
  std::string text = rondo::to_text(instruction);
  if (instruction.origin != 0) {  // a step from a file does not know
    const std::string source = source_of(plan_.program, instruction);
    text +=
        " in " + module_of(plan_.program, instruction) + (source.empty() ? "" : " at " + source);
  }
  std::throw_with_nested(CaptureError(text));
}

// The batch may be gone before its results are read.
void PlannedExecutor::keep_parts_of_batch() {
  for (const auto& [place, slot] : parts_of_batch_) {
    results_[place] = plan_.memory->tensor(slot).clone();
  }
}

void PlannedExecutor::find_inputs(const Batch& batch) {
  const std::vector<Slot>& slots = plan_.program.slots;
  for (size_t position = 0; position < batch.items().size(); ++position) {
    const auto is_entry = [&](const Slot& slot) {
      return slot.kind == SlotKind::Input && slot.name == batch.items()[position].first;
    };
    const auto slot = std::find_if(slots.begin(), slots.end(), is_entry);
    if (slot != slots.end()) {
      inputs_.emplace_back(position, static_cast<SlotId>(slot - slots.begin()));
    }
  }
}

void PlannedExecutor::begin(const Batch& batch) {
  if (kPoisonsArena) {
    plan_.memory->poison();
  }
  bind(batch);
  missed_.reset();
  undo_.begin();
}

void PlannedExecutor::bind(const Batch& batch) {
  if (std::exchange(is_first_, false)) {
    find_inputs(batch);
  }
  for (const auto& [position, slot] : inputs_) {
    const at::Tensor& tensor = batch.items()[position].second;
    if (tensor.numel() > 0) {  // one without elements has no address, and may share a storage
      plan_.memory->bind(slot, tensor.data_ptr());
    }
  }
}

void PlannedExecutor::try_kernels(const Batch& batch) {
  const KernelsOnly scope;
  const at::Tensor random_numbers = generator_state();
  plan_.memory->clear();  // the system gives the memory now, and not in a replay
  bind(batch);
  if (!lies_as_recorded(batch)) {
    return;
  }
  try {
    try_all_kernels();
  } catch (const GuardFailed&) {  // the state is that after the step
    log_.debug("step " + plan_.program.name +
               ": not all kernels were tried before its first replay, because a guard failed");
  } catch (const std::exception& error) {
    log_.debug("step " + plan_.program.name +
               ": not all kernels were tried before its first replay: " + error.what());
  }
  release_all();
  set_generator_state(random_numbers);
}

// Not so where the step as written gave a tensor of the batch another shape.
bool PlannedExecutor::lies_as_recorded(const Batch& batch) const {
  return std::all_of(inputs_.begin(), inputs_.end(), [&](const auto& input) {
    const at::Tensor& tensor = batch.items()[input.first].second;
    const Slot& slot = plan_.program.slots[static_cast<size_t>(input.second)];
    return tensor.sizes() == slot.sizes && tensor.strides() == slot.strides &&
           tensor.storage_offset() == slot.offset;
  });
}

void PlannedExecutor::try_all_kernels() {
  for (PlannedInstruction& planned : plan_.instructions) {
    const Instruction& instruction = plan_.program.instructions[planned.index];
    const std::vector<SlotId> outside = written_outside(instruction);
    const bool makes_nothing = planned.lowering == Lowering::InPlace;
    if (planned.lowering == Lowering::Guard) {
      continue;  // nothing comes of it
    }
    if (planned.trial != nullptr) {
      try_kernel(planned, Trial::Effect::Undone);
    } else if (instruction.is_opaque && !makes_nothing) {
      return;  // who knows what it would do, and what comes next needs what it makes
    } else if (!makes_nothing || (outside.empty() && !instruction.is_opaque)) {
      PutBack put_back;
      for (const SlotId slot : outside) {
        put_back.add(plan_.memory->tensor(slot), plan_.memory->tensor(slot).clone());
      }
      planned.kernel->run();
    } else {
      clear_results(instruction);
    }
    release(planned, *plan_.memory);
  }
}

// Of an instruction that is left out, in the plan's own memory: zeros are indices that every table
// has.
void PlannedExecutor::clear_results(const Instruction& instruction) {
  const auto clear = [&](SlotId slot) {
    if (slot != kNoTensor && plan_.memory->home(slot) == Home::Arena) {
      plan_.memory->tensor(slot).zero_();
    }
  };
  for_each_slot(instruction.results, clear);
  std::for_each(instruction.writes.begin(), instruction.writes.end(), clear);
}

std::vector<SlotId> PlannedExecutor::written_outside(const Instruction& instruction) const {
  std::vector<SlotId> outside;
  for (const SlotId slot : instruction.writes) {
    if (slot != kNoTensor && is_outside(plan_.memory->home(slot))) {
      outside.push_back(slot);
    }
  }
  return outside;
}

void PlannedExecutor::try_kernel(PlannedInstruction& planned, Trial::Effect effect) {
  if (planned.trial->passes(*planned.kernel, effect)) {
    if (--planned.trials == 0) {
      planned.trial.reset();
      --on_trial_;
    }
    return;
  }
  log_.debug("step " + plan_.program.name + ": " +
             rondo::to_text(plan_.program.instructions[planned.index]) +
             " is run as it was recorded, because its " + to_string(planned.lowering) +
             " kernel gives other results");
  planned.lowering = planned.trial->is_copying() ? Lowering::Copying : Lowering::InPlace;
  planned.kernel = planned.trial->take_operator();
  planned.trial.reset();
  --on_trial_;
}

}  // namespace rondo
