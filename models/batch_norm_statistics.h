#pragma once

#include <functional>

namespace torch::nn {
class Module;
}

namespace rondo {

/// Has the batch norms of a module take their running statistics from the batches that `forward`
/// computes, each with the same share. All other layers are in eval mode meanwhile; modes come
/// back. \param forward  computes one batch; false when there is none left \return whether there is
/// a batch norm; without one `forward` is not called Source: the last pass of stochastic weight
/// averaging, Izmailov et al. 2018, arXiv:1803.05407, section 3.2
bool recompute_batch_norms(torch::nn::Module& module, const std::function<bool()>& forward);

}  // namespace rondo
