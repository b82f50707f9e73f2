#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/step.h"
#include "backends/step_report.h"
#include "core/error.h"
#include "tracing/program/program_file.h"

namespace rondo {

class HostCalls;
class PlannedExecutor;

/// What a host call of an exported step does: writes a number that follows from the count of
/// updates.
struct ExportedSchedule {
  std::vector<double> values;  ///< after 0, 1, 2 … updates; the last one stays
};

/// A training step as a file holds it: programs, the state that they change, the random numbers.
/// Everything that needs the trainer is left out (closures); a schedule is a table.
struct StepFile {
  std::vector<StepProgram> programs;
  std::vector<int64_t> cycle;  ///< which program each batch of a group runs
  /// For each program, for each of its host calls: what it writes.
  std::vector<std::vector<ExportedSchedule>> schedules;
  /// For each program, what its guards read and where.
  std::vector<std::vector<std::string>> reads;
  ProgramState state;
  at::Tensor generator;                     ///< state of LibTorch's default generator
  int64_t batches = 0;                      ///< that were run
  bool exact = true;                        ///< kernels that give the operators' bytes only
  std::vector<std::string> without_passes;  ///< see BackendOptions
  StateDict manifest;                       ///< for people and checks; kept as it is
  std::vector<std::string> plans;           ///< `plan_texts` where it was exported; kept as it is
};

/// Newest version of the format; files of a later one are refused. A step without guards is written
/// as version 1.
inline constexpr int64_t kStepFileVersion = 2;

/// What the host read while the step was recorded is another value for this batch: the file has no
/// step for it. Nothing was changed.
struct StepGuardError : Error {
  using Error::Error;
};

/// How this machine runs the programs, for people to read. Slow: plans each of them.
std::vector<std::string> plan_texts(const StepFile& file);

/// \throws NotSupportedError  for a program that cannot be exported, naming what stands in the way
StateDict to_state(const StepFile& file);

/// \throws CheckpointError    when it is no such file, or a number in it is wrong
/// \throws NotSupportedError  when an operator is missing
StepFile step_file_from(const StateDict& saved);

/// Where the batches of two programs differ: "input \"x\" is Float[6, 4] and Float[4, 4]"; "" when
/// both take the same: names, dtypes and shapes.
std::string difference_of_inputs(const StepProgram& one, const StepProgram& other);

/// Runs an exported step, batch after batch. The numbers are those of the trainer's run, bit for
/// bit in the same numeric environment. One thread at a time; several steps may run on several
/// threads, but those that may draw random numbers wait for each other. LibTorch's default
/// generator is as before after each run; only such steps change it meanwhile.
class ExportedStep {
 public:
  explicit ExportedStep(StepFile file);
  ~ExportedStep();

  /// The tensors of a batch, in order, as slots: names, dtypes, shapes; contiguous.
  const std::vector<Slot>& inputs() const { return inputs_; }

  /// The elements of an input for the runs to come; they must stay where they are.
  /// \throws UsageError  when there is no such input
  void bind(const std::string& name, const void* elements);

  /// Trains on one batch.
  /// \throws UsageError      when an input was never bound
  /// \throws StepGuardError  when a guard of the program fails, naming what was read
  void run();

  /// An output of the newest run, or a tensor of the state, which must not be resized; null when
  /// there is no such name. Outputs come first; they are zero before the first run and change with
  /// the next one.
  const at::Tensor* find(const std::string& name) const;

  /// How often the passes of its plans applied, one a program.
  std::vector<PassCounts> passes() const;

  /// What is needed to go on from here.
  const StepFile& file() const { return file_; }

 private:
  void read_inputs();
  void add_host_calls(size_t program);

  StepFile file_;
  std::vector<Slot> inputs_;
  Batch batch_;
  std::vector<bool> is_bound_;
  std::vector<std::unique_ptr<HostCalls>> host_calls_;       // one a program
  std::vector<std::unique_ptr<PlannedExecutor>> executors_;  // one a program
  std::vector<bool> may_draw_;                               // random numbers; one a program
  std::vector<std::pair<std::string, at::Tensor>> outputs_;  // of the newest run
};

}  // namespace rondo
