#pragma once

#include <vector>

#include "optim/optimizer.h"

namespace rondo::test {

/// A user's optimizer, in plain tensor work.
struct SignSgd final : Optimizer {
  struct Options {
    double lr = 1e-3;
    std::vector<ParamGroupOptions> params = {};
  };

  explicit SignSgd(const Options& o) : Optimizer({{"lr", o.lr}}, {"velocity"}, o.params) {}

  void update(ParamGroup& group) override {
    for (Parameter& p : group.params) {
      if (p.grad().defined()) {  // the last backward reached the parameter
        p.value.sub_(p.state("velocity").mul_(0.9).add_(p.grad()).sign() * group["lr"]);
      }
    }
  }
};

}  // namespace rondo::test
