#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tracing/plan/plan.h"

namespace rondo {

/// What a run changes outside of a plan before its last guard, and how it was before the run.
class Undo {
 public:
  explicit Undo(const Plan& plan);

  /// A run begins: copies what it may change.
  void begin();

  /// Gives it back.
  void put_back() const;

  /// Of the copies.
  int64_t bytes() const;

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> copies_;  // tensor, copy
  bool draws_random_ = false;
  at::Tensor generator_;
};

}  // namespace rondo
