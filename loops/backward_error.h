#pragma once

#include <string>

#include "core/error.h"

namespace at {
class Tensor;
}

namespace torch::nn {
class Module;
}

namespace rondo {

/// The gradients of a step could not be computed. Says where; nests its cause.
struct BackwardError : Error {
  using Error::Error;
};

/// Computes the gradients of a loss.
/// \param model  its name, such as "Mlp"
/// \throws BackwardError  that names the model, the node of autograd's graph that failed, the
///                        modules around its operator and, where the step is being recorded, the
///                        operator's line of code. CaptureError, NonFiniteLossError and UsageError,
///                        which say what to do themselves, come out as they are
/// \capture safe: no tensor is read
void run_backward(const std::string& model,
                  const torch::nn::Module& module,
                  const at::Tensor& loss);

}  // namespace rondo
