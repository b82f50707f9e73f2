#pragma once

#include <string>
#include <vector>

#include "core/factory.h"
#include "core/registry.h"
#include "optim/optimizer.h"

namespace rondo::test {

/// A registered optimizer with options.
struct RegisteredOptimizer {
  std::string name;
  std::string keys;  ///< as a config has them, such as "{ lr = 0.1 }"
  Factory<Optimizer> factory;
};

/// Every registered optimizer, with its defaults and with all it offers: weight decay, momentum,
/// and each switch thrown.
std::vector<RegisteredOptimizer> every_optimizer();

}  // namespace rondo::test
