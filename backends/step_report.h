#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "backends/step.h"

namespace rondo {

/// How often each pass applied, by its name; 0 where it was left out.
using PassCounts = std::vector<std::pair<std::string, int64_t>>;

/// How many instructions an operator has, by its name with its overload, sorted.
using OperatorCounts = std::vector<std::pair<std::string, int64_t>>;

/// What recording and replaying one step cost and gave.
struct StepStats {
  int64_t operators_recorded = 0;
  int64_t operators_replayed = 0;  ///< after clean-up, with every closure due
  PassCounts passes;
  int64_t captured_bytes = 0;  ///< state that the step reads or writes
  int64_t arena_bytes = 0;     ///< for what the step computes
  double capture_s = 0.0;      ///< both captures: two real steps
  double build_s = 0.0;        ///< clean-up, building what is run, and trying its kernels
  double verify_s = 0.0;       ///< comparisons with eager, a third capture beside one included
  int64_t replays = 0;
  int64_t eager_runs = 0;  ///< as it is written, since it was refused
  double eager_s = 0.0;    ///< of these
  int64_t undone = 0;      ///< replays that a guard ended; they are not among `replays`

  /// Those of a plan that LibTorch runs and whose results it allocates in each replay.
  OperatorCounts adopted_operators;
};

/// What one instruction of a replayed step costs.
struct InstructionTime {
  std::string op;        ///< such as "aten::mm"
  std::string module;    ///< what it works for: see `module_of`
  std::string source;    ///< the line that asked for it: see `source_of`
  std::string text;      ///< the instruction as the program shows it
  double seconds = 0.0;  ///< in one replay, the mean of the middle half of those timed
  int64_t bytes = 0;     ///< of its arguments and results, each once
};

/// The memory of what one instruction computes.
struct InstructionBytes {
  std::string op;
  std::string module;  ///< what it works for: see `module_of`
  int64_t bytes = 0;
};

/// Where the time of a replay goes.
struct StepTimeline {
  int64_t replays = 0;                        ///< that were timed by instruction; 0: none
  double replay_s = 0.0;                      ///< a whole one without that, the same mean
  std::vector<InstructionTime> instructions;  ///< in the order in which they run
};

/// Bytes of one thing.
struct NamedBytes {
  std::string name;
  int64_t bytes = 0;
};

/// The memory of a planned step, known before it is replayed. Bytes.
struct StepMemory {
  std::vector<NamedBytes> captured;  ///< state, by its name; memory that is shared counts once
  int64_t constants = 0;
  int64_t inputs = 0;      ///< one batch
  int64_t arena = 0;       ///< results, to the end of their last page; what kernels keep
  int64_t of_kernels = 0;  ///< of the arena: the latter
  int64_t adopted = 0;     ///< at most at a time: results that operators allocate in each replay
  int64_t capture = 0;     ///< at most at a time while the step runs as written, besides the state
  int64_t trial = 0;       ///< at most at a time, for comparing kernels before the first replay,
                           ///< adopted results included
  int64_t late_trial = 0;  ///< the same for those that are compared in replays
  int64_t arenas_at_capture = 0;          ///< of the steps that were ready before its last capture
  int64_t arenas_at_first = 0;            ///< of all that were by the end of its first replay
  int64_t arenas_at_trial = 0;            ///< the same for its last replay that compared kernels
  std::vector<InstructionBytes> fullest;  ///< results that live when the most of the arena does
};

/// A value that the host read while the step was recorded. Replays compute it again and compare.
struct StepGuard {
  std::string read;    ///< operator, module and line of code
  std::string answer;  ///< with which the step was recorded
};

/// One recorded step, for people and tools.
struct StepReport {
  std::string name;        ///< fits a file name, such as "train_update.0"
  GroupPosition position;  ///< of a training step
  int64_t samples = 0;     ///< of its batch
  /// "traced"; "guarded": it is replayed while its guards give the same answers; "eager": it was
  /// refused, and has no program, plan or memory.
  std::string mode = "traced";
  std::vector<StepGuard> guards;
  std::string variant_of;      ///< name of the first one that differs in answers; "" for that one
  std::string reason;          ///< why it runs eagerly: what was met, and where
  double share_of_time = 0.0;  ///< that eager runs took, of the time since the backend was made
  StepStats stats;
  std::string program;    ///< text of the program that is replayed
  std::string plan;       ///< text: where and how each instruction runs; "" without a plan
  std::string graph;      ///< text of the TorchScript graph made from it
  StepTimeline timeline;  ///< without replays when none was timed
  StepMemory memory;      ///< of a plan
};

/// Steps of one kind that run as they are written, because they cannot be recorded.
struct EagerSteps {
  std::string name;    ///< such as "train/update"
  std::string reason;  ///< what was met, and where
  int64_t runs = 0;
  double seconds = 0.0;
  double share_of_time = 0.0;  ///< of the time since the backend was made
};

inline bool is_eager(const StepReport& step) {
  return step.mode == "eager";
}

/// Whether it is a step of training, not of a validation.
inline bool is_of_training(const StepReport& step) {
  return step.name.rfind("train_", 0) == 0;
}

}  // namespace rondo
