#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/state_dict.h"

namespace rondo::detail {

/// A state as the records of a torch archive.
struct PickledState {
  std::string pickle;               ///< record data.pkl
  std::vector<at::Tensor> records;  ///< record data/<i> is `.cpu().contiguous()` of the i-th
  std::optional<int64_t> step;      ///< the state's `global_step`, where it has one
};

/// Floats become 0-dim float64 tensors. Tensors are written detached and as if on the CPU.
/// \throws Malformed  naming the entry: an undefined, sparse or quantised tensor, a text that is
/// not
///                    UTF-8, a name that stands twice, values nested deeper than 100 levels
PickledState pickle_state(const StateDict& state);

}  // namespace rondo::detail
