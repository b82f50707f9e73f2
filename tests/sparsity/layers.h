#pragma once

#include <torch/types.h>
#include <torch/utils.h>

#include "core/named_tensor.h"

namespace rondo::test {

/// The parameters of two linear layers, the second without bias.
inline NamedTensors layers() {
  torch::manual_seed(3);
  return {{"in.weight", torch::randn({7, 9}).requires_grad_()},
          {"in.bias", torch::randn({7}).requires_grad_()},
          {"out.weight", torch::randn({3, 7}).requires_grad_()}};
}

}  // namespace rondo::test
