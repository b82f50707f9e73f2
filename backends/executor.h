#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "backends/step_report.h"
#include "core/tensor_map.h"

namespace rondo {

/// Which closures of a program run after a step: bit i for the i-th.
using DueSet = uint64_t;

/// Closures that have a bit; any further ones count as always due.
inline constexpr size_t kDueClosures = 63;

/// What is needed whatever is due.
inline constexpr DueSet kAlwaysDue = ~DueSet{0};

/// When to pause.
using Deadline = std::chrono::steady_clock::time_point;

/// A guard of a program that gave another answer than when the step was recorded.
struct MissedGuard {
  size_t guard = 0;    ///< among the program's guards, in order
  std::string answer;  ///< see `answer_of`
};

/// Runs a recorded step.
class Executor {
 public:
  Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  virtual ~Executor() = default;

  /// \param batch  of the structure that was recorded
  /// \param due    what only other closures need may be left out
  /// \return the program's outputs, then the tensors of its closures, due or not; the next run may
  ///         overwrite them
  virtual const std::vector<at::Tensor>& run(const Batch& batch, DueSet due) = 0;

  /// Begins a run that `advance` goes on with. The batch's memory must stay until it is done.
  /// \return false when runs cannot be cut in pieces: nothing was begun, use `run`
  virtual bool start(const Batch&, DueSet) { return false; }

  /// Runs instructions until the deadline has passed, at least one.
  /// \return the results once the last instruction has run, else null
  virtual const std::vector<at::Tensor>* advance(const Deadline&) { return nullptr; }

  /// The guard that ended the newest run; null when all that were asked held. What that run had
  /// written outside of the plan, and the random numbers that it drew, were put back, and its
  /// results mean nothing. All guards are asked before the first collective operation.
  virtual const MissedGuard* missed_guard() const { return nullptr; }

  /// Does the kernel trials now that the first runs would do otherwise, on the batch of a step that
  /// was run as written. The state, the batch and the random numbers are afterwards as they were.
  virtual void try_kernels(const Batch&) {}

  /// Whether the next run tries anything.
  virtual bool has_trials() const { return false; }

  /// What it needs; nothing when it does not know beforehand.
  virtual StepMemory memory() const { return {}; }

  /// Where the time of its replays goes; empty when none was timed.
  virtual StepTimeline timeline() const { return {}; }

  /// How often the passes applied that change how it runs a program, not the program.
  virtual PassCounts applied() const { return {}; }

  /// The operators that LibTorch runs into memory of its own in each run, which is taken over;
  /// empty without a plan.
  virtual OperatorCounts adopted_operators() const { return {}; }

  /// How the program is run, for people to read; "" when there is nothing to say.
  virtual std::string to_text() const { return ""; }
};

}  // namespace rondo
