#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "core/state_dict.h"

namespace rondo::test {

/// A step to run under both backends: what it owns, and what it does.
struct StepProbe {
  CapturedState state;
  std::function<CapturedState()> more_state;  ///< that is made while the probe runs
  std::function<Outputs(Backend&, const Batch&)> body;
  std::function<Batch(int)> batch;                  ///< of step 0, 1 …; default: `random_batch`
  std::function<StepKey(int)> key;                  ///< default: train/update
  std::function<bool(int, const Cadence&)> is_due;  ///< default: always
};

/// {"x": float32[rows, 6], "label": int64[rows] below 3}, a pure function of `step`.
Batch random_batch(int step, int64_t rows = 8);

/// A backend of this mode with one thread, for which a refused step is an error.
std::unique_ptr<Backend> backend_of(const std::string& mode, const std::string& verify = "first");

/// What a run left: outputs and closures' tensors of every step, the state, the default generator.
struct ProbeRun {
  StateDict bytes;
  std::vector<StepReport> reports;

  int64_t replays() const;
};

/// Seeds LibTorch, makes the probe and runs it.
ProbeRun run_probe(const std::function<StepProbe()>& make, Backend& backend, int steps);

/// Runs the probe eager and traced and compares bytes.
/// \return where they first differ; "" when they are equal and all but `captures` steps were
/// replayed
std::string traced_against_eager(const std::function<StepProbe()>& make,
                                 int steps = 8,
                                 int captures = 2);

/// Message of the CaptureError that a traced run of the probe ends with; "" when it ends well.
std::string capture_error(const std::function<StepProbe()>& make,
                          int steps = 8,
                          const std::string& verify = "first");

/// The smallest trained thing: weights [6, 3] and [3] under plain gradient descent with `lr` in a
/// tensor. `loss` gets the batch's x and label, the weights and the bias.
using ProbeLoss = std::function<at::Tensor(
    const at::Tensor& x, const at::Tensor& label, const at::Tensor& w, const at::Tensor& b)>;

StepProbe descent(const ProbeLoss& loss);

/// Cross entropy of a linear layer.
at::Tensor plain_loss(const at::Tensor& x,
                      const at::Tensor& label,
                      const at::Tensor& w,
                      const at::Tensor& b);

/// The descent with that loss.
StepProbe plain_descent();

/// The same step, whose first run also makes a momentum of the first weight, which later ones use.
StepProbe with_momentum(StepProbe probe);

/// One update from the defined gradients: `p.sub_(grad * lr)`.
void descend(const std::vector<at::Tensor>& parameters, const at::Tensor& lr);

}  // namespace rondo::test
