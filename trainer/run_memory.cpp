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

// Besides those that the thread makes: the batches of a group, which is read whole, and one behind
// it, which shows whether the pass ends there. The end of a pass takes a place of the queue; behind
// it come the batches of the next one, not so of an iterable set.
int64_t batches_ahead(const DataLoader& loader, int64_t group_size, int64_t bytes) {
  const int64_t most = loader.options().prefetch.value_or(usual_prefetch_depth(bytes));
  const int64_t pass = loader.size().value_or(std::max(most, group_size));
  const bool goes_on = dynamic_cast<const Dataset*>(&loader.source()) != nullptr;
  const int64_t queued = goes_on ? most - most / (pass + 1) : std::min(most, pass);
  return queued + std::min(group_size, pass);
}

// Steps are recorded one after the other, and then replayed in this order. An arena takes memory
// from its step's first replay on.
int64_t peak_of(const RunMemory& all, const std::vector<StepReport>& steps) {
  const int64_t copy = all.of_state() - amount(all.state, "kept casts");
  // The history's first copy is older than kept gradients, and is made anew much later.
  const int64_t first_history = all.history > 0 ? copy - amount(all.state, "kept gradients") : 0;
  const int64_t base = all.of_state() + all.inputs + all.ahead + all.constants + first_history;
  int64_t peak = base + all.capture;
  int64_t touched = 0;
  int64_t trials = 0;
  for (const StepReport& step : steps) {
    const StepMemory& memory = step.memory;
    touched += memory.arena;
    const int64_t replay = std::max(memory.adopted, memory.trial);
    trials = std::max(trials, replay);
    if (all.is_verified) {  // beside a copy of state and batch, as a replay and then as written
      peak =
          std::max(peak, base + touched + copy + memory.inputs + std::max(replay, memory.capture));
    }
  }
  peak = std::max(peak, base + touched + trials);
  // Where the state has other memory than in the history's copy, a second one is made beside it.
  const bool is_made_anew = first_history > 0 && first_history < copy;
  return is_made_anew ? std::max(peak, base + touched + copy) : peak;
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
  if (run.fit) {
    const int64_t group_size = run.init.loop.grad_accum_steps;
    all.ahead = batches_ahead(run.fit->train, group_size, all.inputs) * all.inputs;
  }
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
  all.peak = peak_of(all, steps);
  return all;
}

int64_t most_kept_batches(const RunMemory& memory) {
  const SnapshotPace pace;
  return std::min(pace.most_bytes, static_cast<int64_t>(pace.most_steps) * memory.inputs);
}

}  // namespace rondo
