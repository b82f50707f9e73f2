#include "backends/plan/planned_executor.h"

#include <algorithm>

#include "backends/kernels_only.h"
#include "backends/plan/chains.h"

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
                                 int64_t timed_replays)
    : plan_(make_plan(std::move(program), options)),
      log_(std::move(log)),
      memory_(memory_of(plan_)),
      stopwatch_(plan_.instructions.size(), timed_replays) {
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
  for (PlannedInstruction* planned = begin; planned != end;) {
    size_t done = 1;
    if ((planned->users & due) != 0) {
      done = run_from(planned);
      stopwatch_.lap(static_cast<size_t>(planned - begin));
    }
    planned += done;
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
  while (next_ < plan_.instructions.size()) {
    PlannedInstruction& planned = plan_.instructions[next_++];
    if ((planned.users & due_) == 0) {
      continue;
    }
    run_one(planned);
    if (std::chrono::steady_clock::now() >= deadline) {
      break;
    }
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
    try_kernel(planned);
  } else {
    planned.kernel->run();
  }
  release(planned, *plan_.memory);
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

void PlannedExecutor::try_kernel(PlannedInstruction& planned) {
  if (planned.trial->passes(*planned.kernel)) {
    if (--planned.trials == 0) {
      planned.trial.reset();
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
}

}  // namespace rondo
