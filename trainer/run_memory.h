#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "backends/step_report.h"
#include "trainer/dry_run.h"
#include "trainer/run_config.h"

namespace rondo {

/// Bytes, by what for.
using Amounts = std::map<std::string, int64_t>;

/// The memory of all steps of a training together, in bytes: each step has its own arena, all share
/// the state. Besides it there are the data set and what libraries keep.
struct RunMemory {
  Amounts state;       ///< by kind: model, optimizer state, kept gradients, kept casts, other state
  Amounts modules;     ///< of the model's state, by module
  int64_t inputs = 0;  ///< one batch
  int64_t ahead = 0;   ///< the batches that the loader makes ahead
  int64_t validation = 0;  ///< batches of a validation, beside those
  int64_t constants = 0;
  int64_t arenas = 0;
  int64_t adopted = 0;
  int64_t capture = 0;
  int64_t history = 0;      ///< on_nan = "explain": a copy of the state, without the batches since
  int64_t peak = 0;         ///< the most that there ever is; mostly in the first replays
  int64_t unplanned = 0;    ///< of the peak: what was measured beyond what plans tell
  bool is_verified = true;  ///< first replays are compared with eager

  int64_t of_state() const;

  /// Once everything is warm.
  int64_t of_replays() const;
};

/// What follows from the plans of the steps alone.
/// \param steps  of a fit of `run`, at least one of training
RunMemory memory_of(const std::vector<StepReport>& steps, const RunConfig& run);

/// The same, and what no plan knows, above all buffers inside operators: what the dry run of
/// `run` took beyond the peak predicted for itself.
RunMemory memory_of(const DryRun& dry, const RunConfig& run);

/// Bytes of the optimizers' state in the rank that keeps most, where `ranks` share it out
/// (distributed.shard_optimizer).
/// \param steps  of one process that keeps all of it
int64_t most_of_shared_state(const std::vector<StepReport>& steps, int ranks);

/// Whether saves of the run copy its state and write while training goes on.
bool saves_in_background(const RunConfig& run);

/// The most that on_nan = "explain" keeps of batches between two copies of the state.
int64_t most_kept_batches(const RunMemory& memory);

/// What a save and the history may add to the peak.
int64_t most_beside(const RunMemory& all, const RunConfig& run);

}  // namespace rondo
