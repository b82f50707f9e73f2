#pragma once

#include <utility>
#include <vector>

#include "core/tensor_map.h"
#include "pymarlin/module_interface.h"

namespace rondo::pymarlin {

/// Gathers the outputs of steps by their place.
class OutputCollector {
 public:
  /// Takes copies: a step writes its next outputs into the same memory.
  void collect(const Outputs& outputs);

  CollatedOutputs joined() const;

  void reset() { parts_.clear(); }

 private:
  std::vector<std::vector<at::Tensor>> parts_;
};

/// The outputs of a step by name, the loss as "loss" and the others by their numbers, and back.
Outputs named(const StepOutputs& outputs);

}  // namespace rondo::pymarlin
