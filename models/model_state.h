#pragma once

#include <string>
#include <vector>

#include "core/named_tensor.h"
#include "core/state_dict.h"

namespace torch::nn {
class Module;
}

namespace rondo {

/// Parameters of a module by their dotted names. Tied weights stand under each of their names.
NamedTensors named_parameters(const torch::nn::Module& module);

/// Buffers of a module by their dotted names.
NamedTensors named_buffers(const torch::nn::Module& module);

/// Parameters and buffers of a module as a checkpoint holds them, sharing its tensors.
StateDict model_state(const torch::nn::Module& module);

/// Names that a saved state and a module do not have in common.
struct ModelStateReport {
  std::vector<std::string> missing;     ///< the module has them, the state does not
  std::vector<std::string> unexpected;  ///< the reverse

  bool empty() const { return missing.empty() && unexpected.empty(); }
};

/// \param strict  refuse names that are missing or unexpected
/// \throws CheckpointError  listing every missing, unexpected and misshaped entry
ModelStateReport check_model_state(const torch::nn::Module& module,
                                   const StateDict& saved,
                                   bool strict);

/// Copies saved tensors into the module in place; leaves out what is missing or unexpected when it
/// is not strict. \throws CheckpointError  as `check_model_state`; nothing is changed then
ModelStateReport load_model_state(torch::nn::Module& module, const StateDict& saved, bool strict);

}  // namespace rondo
