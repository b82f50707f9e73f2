#pragma once

#include <ATen/record_function.h>

namespace rondo::detail {

/// While it lives, notes whether this thread draws random numbers from LibTorch's default
/// generator. Costs each operator of the thread some microseconds.
class RandomWatch {
 public:
  RandomWatch();
  RandomWatch(const RandomWatch&) = delete;
  RandomWatch& operator=(const RandomWatch&) = delete;
  ~RandomWatch();

  bool has_seen_draw() const;

 private:
  at::CallbackHandle handle_;
};

}  // namespace rondo::detail
