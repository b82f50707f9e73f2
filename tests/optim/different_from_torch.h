#pragma once

#include <ATen/Context.h>
#include <ATen/ops/allclose.h>

#include <string>

#include "optim/parameters.h"

namespace rondo::test {

/// The name of a parameter that differs. An MKL inside of LibTorch rounds square roots in a way of
/// its own: beside it they are the same but for a rounding of each of 50 updates of at most 0.1.
inline std::string different_from_torch(const NamedTensors& ours, const NamedTensors& theirs) {
  if (!at::hasMKL()) {
    return first_different(ours, theirs);
  }
  for (size_t i = 0; i < ours.size(); ++i) {
    if (!at::allclose(ours[i].second, theirs[i].second, /*rtol=*/1e-5, /*atol=*/1e-6)) {
      return ours[i].first;
    }
  }
  return "";
}

}  // namespace rondo::test
