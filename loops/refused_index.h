#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/tensor_map.h"

namespace torch::nn {
class Module;
}

namespace rondo {

/// An element of a batch that an operator refused as the number of a class or a row.
struct RefusedIndex {
  std::string tensor;
  int64_t position = 0;  ///< among the tensor's elements
  int64_t value = 0;
  std::string limit;  ///< what it exceeds, where the complaint does not say so
};

/// Looks for what an operator's complaint is about, such as "Target 7 is out of bounds". LibTorch
/// does not say where it stands, and of an embedding not even its value.
/// \param module  whose embeddings may be meant
std::optional<RefusedIndex> refused_index(const std::string& complaint,
                                          const Batch& batch,
                                          const torch::nn::Module& module);

}  // namespace rondo
