#include "optim/trained_parameter.h"

namespace rondo {

const Parameter* trained_parameter(const Optimizer& optimizer, const at::Tensor& tensor) {
  for (const NamedTensor& trained : optimizer.trained()) {
    if (!trained.second.is_same(tensor)) {
      continue;
    }
    for (const ParamGroup& group : optimizer.groups()) {
      for (const Parameter& parameter : group.params) {
        if (parameter.name == trained.first) {
          return &parameter;
        }
      }
    }
  }
  return nullptr;
}

}  // namespace rondo
