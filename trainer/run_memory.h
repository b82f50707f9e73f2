#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "backends/step_report.h"

namespace rondo {

/// Bytes, by what for.
using Amounts = std::map<std::string, int64_t>;

/// The memory of all steps of a training together, in bytes: each step has its own arena, all share
/// the state. Besides it there are the data set, the batches made ahead, and what libraries keep.
struct RunMemory {
  Amounts state;    ///< by kind: model, optimizer state, kept gradients, other state
  Amounts modules;  ///< of the model's state, by module
  int64_t inputs = 0;
  int64_t constants = 0;
  int64_t arenas = 0;
  int64_t adopted = 0;
  int64_t capture = 0;
  int64_t trial = 0;
  bool is_verified = true;

  int64_t of_state() const;

  /// Once everything is warm.
  int64_t of_replays() const;

  /// The first replay tries its kernels, then meets the step as written, from a copy of the state.
  int64_t peak() const;
};

/// \param is_verified  whether first replays are compared with eager
RunMemory memory_of(const std::vector<StepReport>& steps, bool is_verified);

}  // namespace rondo
