#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "core/error.h"

namespace torch::nn {
class Module;
}

namespace rondo {

/// The gradients of a step could not be computed. Says where; nests its cause.
struct BackwardError : Error {
  using Error::Error;
};

/// Adds the gradients of a loss to those of the parameters.
/// \param model   its name, such as "Mlp"
/// \param inputs  what gets gradients, all of which require one; none: every parameter
/// \throws BackwardError  that names the model, the node of autograd's graph that failed, the
///                        modules around its operator and, where the step is being recorded, the
///                        operator's line of code. CaptureError, NonFiniteLossError and UsageError,
///                        which say what to do themselves, come out as they are
/// \capture safe: no tensor is read
void run_backward(const std::string& model,
                  const torch::nn::Module& module,
                  const at::Tensor& loss,
                  const std::vector<at::Tensor>& inputs = {});

/// The gradients of a loss for `inputs`, added to nothing; undefined where it does not depend on
/// one. \throws as `run_backward`  \capture safe
std::vector<at::Tensor> run_gradients(const std::string& model,
                                      const torch::nn::Module& module,
                                      const at::Tensor& loss,
                                      const std::vector<at::Tensor>& inputs);

}  // namespace rondo
