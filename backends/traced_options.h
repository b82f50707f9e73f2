#pragma once

#include "backends/verify_policy.h"

namespace rondo {

/// How the traced backend runs what it recorded.
struct TracedOptions {
  VerifyPolicy verify;
  bool interprets = false;  ///< with TorchScript's interpreter instead of a plan
};

}  // namespace rondo
