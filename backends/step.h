#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor_map.h"
#include "core/time.h"

namespace rondo {

/// Tensors that a step may read or write and that are not its inputs, by name.
using CapturedState = NamedTensors;

/// Place of a batch in its group of accumulated batches.
struct GroupPosition {
  bool is_first = true;
  bool is_last = true;
  int64_t size = 1;  ///< batches of the group; the loss is divided by it

  bool operator==(const GroupPosition& o) const {
    return is_first == o.is_first && is_last == o.is_last && size == o.size;
  }
};

/// What a recorded step is valid for, besides the structure of its batch, which the backend looks
/// at itself, and a generation that `Backend::invalidate` moves.
struct StepKey {
  std::string step;        ///< "train", "validate" or a validation loop's own name
  GroupPosition position;  ///< of a training step
  std::string precision;   ///< such as "fp32", "bf16"

  bool operator==(const StepKey& o) const {
    return step == o.step && position == o.position && precision == o.precision;
  }
};

/// One step, run with a batch on the backend's device. May queue closures and make host calls.
using StepBody = std::function<Outputs(const Batch&)>;

/// Host code that gets tensors as arguments. A tensor that a lambda captures instead would be read
/// stale when the step is replayed.
using HostFunction = std::function<void(const std::vector<at::Tensor>&)>;

/// When a closure that repeats with its step runs.
struct Cadence {
  bool only_log_steps = false;
  Time every = 1;  ///< updates, or another unit of the run's time

  bool operator==(const Cadence& o) const {
    return only_log_steps == o.only_log_steps && every.unit() == o.every.unit() && every == o.every;
  }
};

/// Says of the step that is about to run whether closures of a cadence will run after it.
using IsDue = std::function<bool(const Cadence&)>;

/// Host work to do after the step, with the tensors that it gets.
struct StepClosure {
  std::vector<at::Tensor> tensors;
  HostFunction run;
  Cadence cadence;
};

}  // namespace rondo
