#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace torch::nn {
class Module;
}

namespace rondo {

/// Runs a part of a forward and keeps none of its intermediate results: the backward pass runs the
/// part again for them. It takes less memory, and the time of one more forward. Results and
/// gradients have the same bits: the second run has the precision and the random numbers of the
/// first, and leaves buffers, such as batch norm's statistics, as the first one left them. (A
/// parameter that several parts use gets its gradients added in another order.) Without gradients
/// it only calls `forward`. Hooks of the parameters' gradients may run twice.
/// \param module   owns the parameters and buffers that `forward` uses; outlives the backward pass
/// \param forward  gives the same for the same inputs and random numbers; called again until the
///                 backward pass is over
/// \param inputs   tensors that `forward` gets, to which gradients flow; others may be captured
/// \throws NotSupportedError  for tensors that are not on the CPU, and in the backward pass, when
///     second derivatives are asked for
/// \throws UsageError  in the backward pass, when the part uses a parameter that `module` does not
///     own, or with an algorithm that changes layers in another way the second time
/// \capture safe
/// Source: Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost", arXiv:1604.06174
at::Tensor recompute(torch::nn::Module& module,
                     std::function<at::Tensor(const std::vector<at::Tensor>&)> forward,
                     const std::vector<at::Tensor>& inputs);

}  // namespace rondo
