#pragma once

#include <string_view>
#include <vector>

#include "optim/optimizer.h"

namespace rondo::detail {

/// The parameters of a group that have a gradient, list by list, as an operator takes them.
class ParamLists {
 public:
  explicit ParamLists(ParamGroup& group) {
    for (Parameter& parameter : group.params) {
      if (parameter.grad().defined()) {
        chosen_.push_back(&parameter);
      }
    }
  }

  bool empty() const { return chosen_.empty(); }

  std::vector<at::Tensor> values() const {
    return collect([](Parameter& p) { return p.value; });
  }

  std::vector<at::Tensor> grads() const {
    return collect([](Parameter& p) { return p.grad(); });
  }

  std::vector<at::Tensor> states(std::string_view name) const {
    return collect([name](Parameter& p) { return p.state(name); });
  }

 private:
  template <class Get>
  std::vector<at::Tensor> collect(Get get) const {
    std::vector<at::Tensor> tensors;
    tensors.reserve(chosen_.size());
    for (Parameter* parameter : chosen_) {
      tensors.push_back(get(*parameter));
    }
    return tensors;
  }

  std::vector<Parameter*> chosen_;
};

}  // namespace rondo::detail
