#include "trainer/run_memory.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>

#include "callbacks/core/sharded_updates.h"
#include "data/prefetch_depth.h"
#include "tracing/checks/step_history.h"

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

/// What an optimizer keeps for a parameter.
struct OptimizerState {
  std::string optimizer;
  std::string parameter;
  std::string name;
};

/// "optimizer.state/layers.0.weight/exp_avg": of "optimizer", for "layers.0.weight". Nothing for
/// other names.
std::optional<OptimizerState> optimizer_state_of(const std::string& captured) {
  constexpr std::string_view kState = ".state/";
  const size_t begin = captured.find(kState);
  if (!begins_with(captured, "optimizer") || begin == std::string::npos) {
    return std::nullopt;
  }
  const size_t parameter = begin + kState.size();
  const size_t name = captured.rfind('/') + 1;
  return OptimizerState{captured.substr(0, begin),
                        captured.substr(parameter, name - 1 - parameter),
                        captured.substr(name)};
}

int64_t amount(const Amounts& amounts, const char* kind) {
  const auto found = amounts.find(kind);
  return found != amounts.end() ? found->second : 0;
}

/// The batches of a pass, in bytes and numbers.
struct Batches {
  int64_t bytes = 0;       ///< of one
  int64_t last_bytes = 0;  ///< of the last one
  int64_t pass = 1;        ///< how many
  int64_t group = 1;       ///< of an update, as it was set; the last one of a pass may be cut short
  int64_t ahead = 0;       ///< places in the loader's queue
  int64_t behind = 1;      ///< places read with a group: the next shows whether the pass ends there
  bool goes_on = true;     ///< the queue goes on with the next pass, not so of an iterable set

  /// Bytes of the first `places` that the loader fills. The end of a pass takes one, without bytes.
  int64_t first(int64_t places) const {
    const int64_t passes = goes_on ? places / (pass + 1) : 0;
    const int64_t rest = places - passes * (pass + 1);
    const int64_t whole = (pass - 1) * bytes + last_bytes;
    return passes * whole + (rest < pass ? rest * bytes : whole);
  }

  /// Bytes of the most that are there at once: a group, which is read whole, what is read behind
  /// it, and what was made ahead. That much stays (BatchMemory); what a data set allocates by
  /// itself may not.
  int64_t most() const {
    const int64_t places = std::min(group, pass) + behind + ahead;
    if (places < pass) {
      return places * bytes;
    }
    int64_t found = 0;
    for (int64_t begin = 0; begin <= pass; ++begin) {
      found = std::max(found, first(begin + places) - first(begin));
    }
    return found;
  }
};

/// \param steps  that run on batches of the loader, at least one
Batches batches_of(const DataLoader& loader, int64_t group, const std::vector<StepReport>& steps) {
  Batches batches;
  batches.bytes = batches.last_bytes = steps.front().memory.inputs;
  int64_t longest_group = 1;
  for (const StepReport& step : steps) {
    batches.bytes = std::max(batches.bytes, step.memory.inputs);
    batches.last_bytes = std::min(batches.last_bytes, step.memory.inputs);
    longest_group = std::max(longest_group, step.position.size);
  }
  batches.group = group;
  batches.ahead = loader.options().prefetch.value_or(usual_prefetch_depth(batches.bytes));
  batches.pass = loader.size().value_or(longest_group + batches.ahead + 2);
  return batches;
}

/// The steps of a validation that have batches of the loader, as far as their sizes tell.
std::vector<StepReport> steps_of(const DataLoader& loader, const std::vector<StepReport>& steps) {
  const int64_t whole = loader.options().batch_size;
  const int64_t last = loader.last_size().value_or(whole);
  std::vector<StepReport> found;
  std::copy_if(steps.begin(), steps.end(), std::back_inserter(found), [&](const StepReport& step) {
    return !is_of_training(step) && (step.samples == whole || step.samples == last);
  });
  return found;
}

/// The batches of a run.
class BatchesOfRun {
 public:
  BatchesOfRun(const RunConfig& run, const std::vector<StepReport>& steps) {
    std::vector<StepReport> training;
    std::copy_if(steps.begin(), steps.end(), std::back_inserter(training), is_of_training);
    Batches batches = batches_of(run.fit->train, run.init.loop.grad_accum_steps, training);
    batches.goes_on = dynamic_cast<const Dataset*>(&run.fit->train.source()) != nullptr;
    of_training_ = batches.most();
    for (const DataLoader& loader : run.fit->val) {
      add_validation(loader, steps_of(loader, steps));
    }
  }

  int64_t of_training() const { return of_training_; }

  /// Of the loader that has most.
  int64_t of_validation() const { return of_validation_; }

  /// What is there while a step runs. Which loader the step of a validation belongs to is not told.
  int64_t beside(const StepReport& step) const {
    return is_of_training(step) ? of_training_ : of_training_ + of_validation_;
  }

 private:
  void add_validation(const DataLoader& loader, const std::vector<StepReport>& steps) {
    if (steps.empty()) {
      return;
    }
    Batches batches = batches_of(loader, 1, steps);
    batches.goes_on = false;
    batches.behind = 0;
    of_validation_ = std::max(of_validation_, batches.most());
  }

  int64_t of_training_ = 0;
  int64_t of_validation_ = 0;
};

// An arena takes memory from the last capture of its step on.
int64_t peak_of(const RunMemory& all,
                const std::vector<StepReport>& steps,
                const BatchesOfRun& batches) {
  const int64_t copy = all.of_state() - amount(all.state, "kept casts");
  // The history's first copy is older than kept gradients, and is made anew much later.
  const int64_t first_history = all.history > 0 ? copy - amount(all.state, "kept gradients") : 0;
  const int64_t base = all.of_state() + all.constants + first_history;
  const int64_t most_batches = all.inputs + all.ahead;
  int64_t peak = base + most_batches + all.capture;
  for (const StepReport& step : steps) {
    const StepMemory& memory = step.memory;
    const int64_t there = base + batches.beside(step);
    const int64_t until_ready = std::max(memory.capture, memory.arena + memory.trial);
    peak = std::max(peak, base + batches.beside(step) + memory.arenas_at_capture + until_ready);
    if (all.is_verified) {  // beside a copy of state and batch, as a replay and then as written
      peak = std::max(peak,
                      there + memory.arenas_at_first + copy + memory.inputs +
                          std::max({memory.adopted, memory.late_trial, memory.capture}));
    }
    peak = std::max({peak,
                     there + memory.arenas_at_trial + memory.late_trial,
                     there + all.arenas + memory.adopted});
  }
  // Where the state has other memory than in the history's copy, a second one is made beside it.
  const bool is_made_anew = first_history > 0 && first_history < copy;
  return is_made_anew ? std::max(peak, base + most_batches + all.arenas + copy) : peak;
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
  return of_state() + inputs + ahead + validation + constants + arenas + adopted + history;
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
    if (is_of_training(step)) {
      all.inputs = std::max(all.inputs, step.memory.inputs);
    }
    all.constants += step.memory.constants;
    all.arenas += step.memory.arena;
    all.adopted = std::max(all.adopted, step.memory.adopted);
    all.capture = std::max(all.capture, step.memory.capture);
  }
  const BatchesOfRun batches(run, steps);
  all.ahead = batches.of_training() - all.inputs;
  all.validation = batches.of_validation();
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
  all.peak = peak_of(all, steps, batches);
  return all;
}

RunMemory memory_of(const DryRun& dry, const RunConfig& run) {
  RunConfig its_run = run;
  its_run.fit->train = dry.train;
  its_run.fit->val = dry.val;
  const int64_t without = memory_of(dry.steps, its_run).peak;
  RunMemory all = memory_of(dry.steps, run);
  all.unplanned = std::max<int64_t>(dry.grown_by - without, 0);
  all.peak += all.unplanned;
  return all;
}

int64_t most_of_shared_state(const std::vector<StepReport>& steps, int ranks) {
  std::map<std::string, int64_t> of_parameters;
  std::vector<std::string> order;
  std::map<std::string, std::map<std::string, int64_t>> of_optimizers;  // by parameter
  int64_t everywhere = 0;
  std::set<std::string> counted;
  for (const StepReport& step : steps) {
    for (const NamedBytes& one : step.memory.captured) {
      if (!counted.insert(one.name).second) {
        continue;
      }
      if (begins_with(one.name, "model.")) {
        order.push_back(one.name.substr(one.name.find('.') + 1));
        of_parameters[order.back()] = one.bytes;
      } else if (const auto state = optimizer_state_of(one.name)) {
        (state->name == "master" ? everywhere
                                 : of_optimizers[state->optimizer][state->parameter]) += one.bytes;
      }
    }
  }
  std::vector<int64_t> of_ranks(static_cast<size_t>(ranks), everywhere);
  for (const auto& [optimizer, states] : of_optimizers) {
    std::vector<int64_t> elements;
    std::vector<int64_t> bytes;
    for (const std::string& parameter : order) {
      if (const auto state = states.find(parameter); state != states.end()) {
        elements.push_back(of_parameters[parameter]);
        bytes.push_back(state->second);
      }
    }
    const std::vector<int> owners = owners_of(elements, ranks);
    for (size_t i = 0; i < bytes.size(); ++i) {
      of_ranks[static_cast<size_t>(owners[i])] += bytes[i];
    }
  }
  return *std::max_element(of_ranks.begin(), of_ranks.end());
}

bool saves_in_background(const RunConfig& run) {
  const CheckpointOptions& options = run.init.checkpoint;
  return options.async && (!options.steps.is_zero() || options.save_final_checkpoint);
}

int64_t most_beside(const RunMemory& all, const RunConfig& run) {
  return (saves_in_background(run) ? all.of_state() : 0) +
         (all.history > 0 ? most_kept_batches(all) : 0);
}

int64_t most_kept_batches(const RunMemory& memory) {
  const SnapshotPace pace;
  return std::min(pace.most_bytes, static_cast<int64_t>(pace.most_steps) * memory.inputs);
}

}  // namespace rondo
