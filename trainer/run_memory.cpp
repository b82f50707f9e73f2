#include "trainer/run_memory.h"

#include <algorithm>

#include "backends/checks/step_history.h"
#include "data/prefetch_depth.h"

namespace rondo {

namespace {

bool begins_with(const std::string& text, const char* prefix) {
  return text.rfind(prefix, 0) == 0;
}

const char* kind_of(const std::string& captured) {
  if (begins_with(captured, "model.") || begins_with(captured, "optimizer.param/")) {
    return "model";
  }
  if (begins_with(captured, "optimizer.grad/")) {
    return "kept gradients";
  }
  if (begins_with(captured, "cast.")) {
    return "kept casts";
  }
  return begins_with(captured, "optimizer.") ? "optimizer state" : "other state";
}

/// "model.layers.0.weight" belongs to "layers.0"
std::string module_of(const std::string& captured) {
  const size_t begin = captured.find('.') + 1;
  const size_t end = captured.rfind('.');
  return end > begin ? captured.substr(begin, end - begin) : "the model itself";
}

int64_t amount(const Amounts& amounts, const char* kind) {
  const auto found = amounts.find(kind);
  return found != amounts.end() ? found->second : 0;
}

/// How many batches there are.
struct Batches {
  int64_t pass = 1;
  int64_t group = 1;   ///< of an update, as it was set; the last one of a pass may be cut short
  int64_t queued = 0;  ///< made ahead by the loader's thread, at most
};

// The end of a pass takes a place of the queue; behind it come the batches of the next one, not so
// of an iterable set.
Batches batches_of(const DataLoader& loader, int64_t group, int64_t bytes) {
  const int64_t most = loader.options().prefetch.value_or(usual_prefetch_depth(bytes));
  const int64_t pass = loader.size().value_or(std::max(most, group) + 1);
  const bool goes_on = dynamic_cast<const Dataset*>(&loader.source()) != nullptr;
  return {pass, group, goes_on ? most - most / (pass + 1) : std::min(most, pass)};
}

// Besides the queue: a group, which is read whole, and a batch behind it, which shows whether the
// pass ends there. The batch that a step reads is not counted.
int64_t batches_ahead(const Batches& batches) {
  return batches.queued + std::min(batches.group, batches.pass - 1);
}

/// The training whose peak is asked for.
struct Training {
  const RunMemory& all;
  const std::vector<StepReport>& steps;
  Batches batches;

  /// Whether only the end of a pass has the step: its group or batch is cut short.
  bool ends_pass(const StepReport& step) const {
    return step.group_size < batches.group || step.memory.inputs < all.inputs;
  }

  /// Bytes of the batches that are there while the step runs. No batch is behind the last group.
  int64_t batches_with(const StepReport& step) const {
    return ends_pass(step)
               ? (batches.queued + step.group_size - 1) * all.inputs + step.memory.inputs
               : all.inputs + all.ahead;
  }
};

// Steps are recorded one after the other, and then replayed in this order. An arena takes memory
// from its step's first replay on.
int64_t peak_of(const Training& training) {
  const RunMemory& all = training.all;
  const int64_t copy = all.of_state() - amount(all.state, "kept casts");
  // The history's first copy is older than kept gradients, and is made anew much later.
  const int64_t first_history = all.history > 0 ? copy - amount(all.state, "kept gradients") : 0;
  const int64_t base = all.of_state() + all.constants + first_history;
  const int64_t most_batches = all.inputs + all.ahead;
  int64_t peak = base + most_batches + all.capture;
  int64_t touched = 0;
  int64_t touched_by_whole_groups = 0;
  for (const StepReport& step : training.steps) {
    const StepMemory& memory = step.memory;
    touched += memory.arena;
    touched_by_whole_groups += training.ends_pass(step) ? 0 : memory.arena;
    if (all.is_verified) {  // beside a copy of state and batch, as a replay and then as written
      peak = std::max(peak,
                      base + training.batches_with(step) + touched + copy + memory.inputs +
                          std::max({memory.adopted, memory.trial, memory.capture}));
    }
  }
  // Where a pass has several whole groups, their kernels are tried before what ends it is replayed.
  const bool has_several = training.batches.pass / training.batches.group >= 2;
  for (const StepReport& step : training.steps) {
    const int64_t there = base + training.batches_with(step);
    const bool is_tried_early = has_several && !training.ends_pass(step);
    peak = std::max(
        {peak,
         there + touched + step.memory.adopted,
         there + (is_tried_early ? touched_by_whole_groups : touched) + step.memory.trial});
  }
  // Where the state has other memory than in the history's copy, a second one is made beside it.
  const bool is_made_anew = first_history > 0 && first_history < copy;
  return is_made_anew ? std::max(peak, base + most_batches + touched + copy) : peak;
}

}  // namespace

int64_t RunMemory::of_state() const {
  int64_t sum = 0;
  for (const auto& [kind, bytes] : state) {
    sum += bytes;
  }
  return sum;
}

int64_t RunMemory::of_replays() const {
  return of_state() + inputs + ahead + constants + arenas + adopted + history;
}

RunMemory memory_of(const std::vector<StepReport>& steps, const RunConfig& run) {
  const BackendOptions& options = run.init.backend;
  RunMemory all;
  all.is_verified = options.verify != "off" && options.exact;
  std::map<std::string, int64_t> captured;
  for (const StepReport& step : steps) {
    for (const NamedBytes& one : step.memory.captured) {
      captured[one.name] = one.bytes;
    }
    all.inputs = std::max(all.inputs, step.memory.inputs);
    all.constants += step.memory.constants;
    all.arenas += step.memory.arena;
    all.adopted = std::max(all.adopted, step.memory.adopted);
    all.capture = std::max(all.capture, step.memory.capture);
  }
  const Batches batches = batches_of(run.fit->train, run.init.loop.grad_accum_steps, all.inputs);
  all.ahead = batches_ahead(batches) * all.inputs;
  for (const auto& [name, bytes] : captured) {
    const std::string kind = kind_of(name);
    all.state[kind] += bytes;
    if (kind == "model") {
      all.modules[module_of(name)] += bytes;
    }
  }
  if (options.on_nan == "explain") {
    all.history = all.of_state() - amount(all.state, "kept casts");
  }
  all.peak = peak_of({all, steps, batches});
  return all;
}

int64_t most_kept_batches(const RunMemory& memory) {
  const SnapshotPace pace;
  return std::min(pace.most_bytes, static_cast<int64_t>(pace.most_steps) * memory.inputs);
}

}  // namespace rondo
