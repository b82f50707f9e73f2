#pragma once

#include "core/state_dict.h"

namespace torch::nn {
class Module;
}

namespace rondo {

/// Parameters and buffers of a module by their dotted names, sharing its tensors. A tensor that
/// stands under several names (tied weights) stands under each.
StateDict model_state(const torch::nn::Module& module);

/// Copies saved tensors into the module in place.
/// \param strict  refuse names that are missing or unknown; otherwise they are left out
/// \throws CheckpointError  listing every missing, unexpected and misshaped entry; nothing is
/// changed then
void load_model_state(torch::nn::Module& module, const StateDict& saved, bool strict);

}  // namespace rondo
