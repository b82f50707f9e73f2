#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "core/named_tensor.h"

namespace rondo {

/// Shares the parameters of an optimizer out among processes that have the same model and the same
/// gradients. A process keeps the state of its own parameters, and updates these alone.
/// Source: S. Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter
/// Models", 2020, stage 1
class UpdateSharing {
 public:
  UpdateSharing() = default;
  UpdateSharing(const UpdateSharing&) = delete;
  UpdateSharing& operator=(const UpdateSharing&) = delete;
  virtual ~UpdateSharing() = default;

  /// Which parameters are this process's own. Called once.
  virtual std::vector<bool> share(const NamedTensors& parameters) = 0;

  /// After an update has written the own values: gives them to the other processes and takes
  /// theirs, in place.  \capture safe
  /// \param values  of all parameters, in the order of `share`
  virtual void exchange(const std::vector<at::Tensor>& values) = 0;
};

}  // namespace rondo
