#include "checkpoint/archives.h"

#include <torch/types.h>

namespace rondo::test {

StateDict sample_state() {
  const at::Tensor base = torch::arange(12, torch::kFloat32);
  return {{"model",
           StateDict{{"weight", base.view({3, 4})},
                     {"row", base.slice(0, 4, 8)},
                     {"running_mean", torch::full({2}, 0.25, torch::kBFloat16)},
                     {"mask", torch::tensor({true, false, true})}}},
          {"global_step", 12345678901},
          {"lr", 0.1},
          {"names", StateList{"a", true, StateValue(), StateList{1, -2}}},
          {"empty", StateDict{}}};
}

}  // namespace rondo::test
