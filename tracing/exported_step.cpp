#include "tracing/exported_step.h"

#include <algorithm>
#include <mutex>
#include <optional>

#include <ATen/ops/from_blob.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "backends/generator_state.h"
#include "core/error.h"
#include "core/flat_memory.h"
#include "tracing/plan/planned_executor.h"
#include "tracing/program/guards.h"
#include "tracing/program/storages.h"
#include "tracing/recording/dispatcher.h"
#include "tracing/recording/host_calls.h"

namespace rondo {

namespace {

void require(bool holds, const std::string& what) {
  if (!holds) {
    throw CheckpointError("not a step that rondo exported: " + what);
  }
}

StateDict state_of(const ProgramState& tensors) {
  StateDict state;
  for (const auto& [name, tensor] : tensors) {
    state.set(name, tensor.detach());
  }
  return state;
}

/// Held while somebody exchanges the state of LibTorch's one default generator: each step has
/// random numbers of its own, and planning draws some.
std::mutex& generator_mutex() {
  static std::mutex mutex;
  return mutex;
}

/// An opaque operator may draw too; host calls write a number from a table.
bool may_draw(const StepProgram& program) {
  return std::any_of(
      program.instructions.begin(), program.instructions.end(), [](const Instruction& instruction) {
        return instruction.draws_random || (instruction.is_opaque && !is_host_call(instruction));
      });
}

/// The step's own random numbers while it lives.
class OwnGenerator {
 public:
  explicit OwnGenerator(at::Tensor& own) : lock_(generator_mutex()), own_(own) { exchange(); }

  OwnGenerator(const OwnGenerator&) = delete;
  OwnGenerator& operator=(const OwnGenerator&) = delete;

  ~OwnGenerator() { exchange(); }

 private:
  void exchange() {
    const at::Tensor now = generator_state();
    set_generator_state(own_);
    own_ = now;
  }

  const std::lock_guard<std::mutex> lock_;
  at::Tensor& own_;
};

std::vector<Slot> inputs_of(const StepProgram& program) {
  std::vector<Slot> inputs;
  std::copy_if(
      program.slots.begin(), program.slots.end(), std::back_inserter(inputs), [](const Slot& slot) {
        return slot.kind == SlotKind::Input;
      });
  return inputs;
}

StateDict signature_of(const StepFile& file) {
  StateDict inputs;
  for (const Slot& slot : inputs_of(file.programs.front())) {
    inputs.set(slot.name, to_text(slot));
  }
  StateDict outputs;
  for (const auto& [name, slot] : file.programs.back().outputs) {
    outputs.set(name, to_text(file.programs.back().slots[static_cast<size_t>(slot)]));
  }
  return {{"inputs", inputs}, {"outputs", outputs}};
}

/// One list of tables a program, one table a host call of it.
std::vector<std::vector<ExportedSchedule>> schedules_from(
    const StateList& saved, const std::vector<StepProgram>& programs) {
  require(saved.size() == programs.size(),
          fmt::format(
              "it has schedules for {} programs, and {} programs", saved.size(), programs.size()));
  std::vector<std::vector<ExportedSchedule>> schedules;
  for (size_t i = 0; i < programs.size(); ++i) {
    std::vector<ExportedSchedule>& tables = schedules.emplace_back();
    for (const StateValue& table : saved[i].as_list()) {
      const at::Tensor& values = table.as_tensor();
      require(values.scalar_type() == at::kDouble && values.dim() == 1 && values.numel() > 0,
              fmt::format("schedule {} of program \"{}\" is no row of float64 numbers",
                          tables.size(),
                          programs[i].name));
      const at::Tensor plain = values.contiguous();
      tables.push_back({{plain.data_ptr<double>(), plain.data_ptr<double>() + plain.numel()}});
    }
    require(tables.size() == programs[i].host_calls.size(),
            fmt::format("program \"{}\" has {} schedules for {} host calls",
                        programs[i].name,
                        tables.size(),
                        programs[i].host_calls.size()));
  }
  return schedules;
}

/// Copies the state out of the mapped file into one block; otherwise the first write to each page
/// would copy it.
void lay_out(const ProgramState& state) {
  FlatMemory memory;
  for (const auto& [name, tensor] : state) {
    memory.move(tensor);
  }
  memory.allocate();
}

/// The texts in a list; none when there is no such list.
std::vector<std::string> texts_in(const StateDict& saved, const char* list) {
  std::vector<std::string> texts;
  if (const StateValue* const found = saved.find(list)) {
    for (const StateValue& text : found->as_list()) {
      texts.push_back(text.as_string());
    }
  }
  return texts;
}

StateList lists_of(const std::vector<std::vector<std::string>>& texts) {
  StateList lists;
  for (const std::vector<std::string>& list : texts) {
    lists.emplace_back(StateList(list.begin(), list.end()));
  }
  return lists;
}

/// Of files without guards, earlier ones among them: none.
std::vector<std::vector<std::string>> reads_from(const StateDict& saved,
                                                 const std::vector<StepProgram>& programs) {
  std::vector<std::vector<std::string>> reads(programs.size());
  const StateValue* const lists = saved.find("reads");
  for (size_t i = 0; i < programs.size(); ++i) {
    const size_t guards = answers_of(programs[i]).size();
    if (lists != nullptr && i < lists->as_list().size()) {
      for (const StateValue& read : lists->as_list()[i].as_list()) {
        reads[i].push_back(read.as_string());
      }
    }
    require(reads[i].size() == guards,
            fmt::format("program \"{}\" has names for {} of its {} guards",
                        programs[i].name,
                        reads[i].size(),
                        guards));
  }
  return reads;
}

}  // namespace

StateDict to_state(const StepFile& file) {
  ProgramState state = file.state;
  StateList programs;
  StateList schedules;
  for (size_t i = 0; i < file.programs.size(); ++i) {
    programs.emplace_back(to_state(file.programs[i], state));
    StateList tables;
    for (const ExportedSchedule& schedule : file.schedules[i]) {
      tables.emplace_back(at::tensor(schedule.values, at::kDouble));
    }
    schedules.emplace_back(tables);
  }
  const bool is_guarded =
      std::any_of(file.programs.begin(), file.programs.end(), [](const StepProgram& program) {
        return !answers_of(program).empty();
      });
  StateDict saved{
      {"rondo_step", is_guarded ? kStepFileVersion : int64_t{1}},
      {"manifest", file.manifest},
      {"signature", signature_of(file)},
      {"programs", programs},
      {"plans", StateList(file.plans.begin(), file.plans.end())},
      {"cycle", StateList(file.cycle.begin(), file.cycle.end())},
      {"schedules", schedules},
      {"state", state_of(state)},
      {"generator", file.generator},
      {"batches", file.batches},
      {"exact", file.exact},
      {"without_passes", StateList(file.without_passes.begin(), file.without_passes.end())}};
  if (is_guarded) {
    saved.set("reads", lists_of(file.reads));
  }
  return saved;
}

std::vector<std::string> plan_texts(const StepFile& file) {
  const std::lock_guard<std::mutex> lock(generator_mutex());
  const PlanOptions options = plan_options(file.exact, file.without_passes);
  std::vector<std::string> texts;
  for (const StepProgram& program : file.programs) {
    texts.push_back(to_text(make_plan(program, options)));
  }
  return texts;
}

StepFile step_file_from(const StateDict& saved) {
  register_with_dispatcher();  // rondo's own operators are found from here on
  const StateValue* const version = saved.find("rondo_step");
  require(version != nullptr, "it has no version");
  if (version->as_int() > kStepFileVersion) {
    throw CheckpointError("the step was exported by a newer rondo: format " +
                          std::to_string(version->as_int()) + ", known are those up to " +
                          std::to_string(kStepFileVersion));
  }
  StepFile file;
  for (const StateDict::Item& item : saved.at("state").as_dict().items()) {
    file.state.emplace(item.first, item.second.as_tensor());
  }
  lay_out(file.state);
  for (const StateValue& program : saved.at("programs").as_list()) {
    file.programs.push_back(program_from(program.as_dict(), file.state));
  }
  require(!file.programs.empty(), "it has no program");
  for (const StateValue& program : saved.at("cycle").as_list()) {
    const int64_t index = program.as_int();
    require(index >= 0 && index < static_cast<int64_t>(file.programs.size()),
            fmt::format("its cycle runs program {} of {}", index, file.programs.size()));
    file.cycle.push_back(index);
  }
  require(!file.cycle.empty(), "its cycle is empty");
  file.schedules = schedules_from(saved.at("schedules").as_list(), file.programs);
  file.reads = reads_from(saved, file.programs);
  file.generator = saved.at("generator").as_tensor();
  file.batches = saved.at("batches").as_int();
  require(file.batches >= 0, fmt::format("it has run {} batches", file.batches));
  file.exact = saved.at("exact").as_bool();
  // Earlier files do not tell. The bytes are the same either way: no new version of the format.
  file.without_passes = texts_in(saved, "without_passes");
  file.manifest = saved.at("manifest").as_dict();
  file.plans = texts_in(saved, "plans");
  return file;
}

std::string difference_of_inputs(const StepProgram& one, const StepProgram& other) {
  const std::vector<Slot> a = inputs_of(one);
  const std::vector<Slot> b = inputs_of(other);
  if (a.size() != b.size()) {
    return fmt::format("there are {} inputs and {}", a.size(), b.size());
  }
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].name != b[i].name) {
      return fmt::format("input {} is \"{}\" and \"{}\"", i, a[i].name, b[i].name);
    }
    if (a[i].dtype != b[i].dtype || a[i].sizes != b[i].sizes) {
      return fmt::format("input \"{}\" is {} and {}", a[i].name, to_text(a[i]), to_text(b[i]));
    }
  }
  return "";
}

ExportedStep::ExportedStep(StepFile file) : file_(std::move(file)) {
  register_with_dispatcher();
  read_inputs();
  const PlanOptions plan = plan_options(file_.exact, file_.without_passes);
  for (size_t i = 0; i < file_.programs.size(); ++i) {
    add_host_calls(i);
    const std::lock_guard<std::mutex> lock(generator_mutex());
    executors_.push_back(
        std::make_unique<PlannedExecutor>(file_.programs[i], TextLog(LogLevel::Warning), plan));
    may_draw_.push_back(may_draw(file_.programs[i]));
  }
  const StepProgram& last = file_.programs.back();
  for (const auto& [name, slot] : last.outputs) {
    const Slot& output = last.slots[static_cast<size_t>(slot)];
    outputs_.emplace_back(name, at::zeros(output.sizes, output.dtype));
  }
}

ExportedStep::~ExportedStep() = default;

void ExportedStep::read_inputs() {
  inputs_ = inputs_of(file_.programs.front());
  for (const StepProgram& program : file_.programs) {
    const std::string difference = difference_of_inputs(file_.programs.front(), program);
    require(difference.empty(), "programs with different inputs: " + difference);
    require(written_input(program) == kNoTensor, "a program that writes its inputs");
  }
  for (const Slot& slot : inputs_) {
    require(is_contiguous(slot), "an input that is not contiguous");
    batch_.set(slot.name, at::Tensor());
    is_bound_.push_back(false);
  }
}

// A schedule writes what follows the update that its step makes.
void ExportedStep::add_host_calls(size_t program) {
  auto calls = std::make_unique<HostCalls>();
  for (const ExportedSchedule& schedule : file_.schedules[program]) {
    calls->add([this, &schedule](const std::vector<at::Tensor>& tensors) {
      const auto done = file_.batches / static_cast<int64_t>(file_.cycle.size()) + 1;
      const auto last = static_cast<int64_t>(schedule.values.size()) - 1;
      for (const at::Tensor& tensor : tensors) {
        *tensor.data_ptr<double>() = schedule.values[static_cast<size_t>(std::min(done, last))];
      }
    });
  }
  host_calls_.push_back(std::move(calls));
}

void ExportedStep::bind(const std::string& name, const void* elements) {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Slot& slot = inputs_[i];
    if (slot.name == name) {
      batch_.set(name, at::from_blob(const_cast<void*>(elements), slot.sizes, slot.dtype));
      is_bound_[i] = true;
      return;
    }
  }
  throw UsageError("the step has no input \"" + name + "\"");
}

void ExportedStep::run() {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (!is_bound_[i]) {
      throw UsageError("input \"" + inputs_[i].name + "\" of the step is not bound");
    }
  }
  const auto position = static_cast<size_t>(file_.batches) % file_.cycle.size();
  const auto program = static_cast<size_t>(file_.cycle[position]);
  std::optional<OwnGenerator> random;
  if (may_draw_[program]) {
    random.emplace(file_.generator);
  }
  const HostCallScope scope(*host_calls_[program]);
  const std::vector<at::Tensor>& results = executors_[program]->run(batch_, kAlwaysDue);
  if (const MissedGuard* const missed = executors_[program]->missed_guard()) {
    throw StepGuardError(fmt::format(
        "the step was exported for batches where {} gives {}; for this one it gives {}. Nothing "
        "was changed",
        file_.reads[program][missed->guard],
        answers_of(file_.programs[program])[missed->guard],
        missed->answer));
  }
  const bool is_guarded = !answers_of(file_.programs[program]).empty();
  for (size_t i = 0; i < file_.programs[program].outputs.size(); ++i) {
    const std::string& name = file_.programs[program].outputs[i].first;
    const auto output = std::find_if(
        outputs_.begin(), outputs_.end(), [&](const auto& known) { return known.first == name; });
    if (output != outputs_.end()) {
      // A run that a guard ends must leave them as they are.
      output->second = is_guarded ? results[i].clone() : results[i];
    }
  }
  ++file_.batches;
}

std::vector<PassCounts> ExportedStep::passes() const {
  std::vector<PassCounts> all;
  for (const auto& executor : executors_) {
    all.push_back(executor->applied());
  }
  return all;
}

const at::Tensor* ExportedStep::find(const std::string& name) const {
  for (const auto& output : outputs_) {
    if (output.first == name) {
      return &output.second;
    }
  }
  const auto state = file_.state.find(name);
  return state != file_.state.end() ? &state->second : nullptr;
}

}  // namespace rondo
