#pragma once

#include <ATen/Parallel.h>

namespace rondo::test {

/// LibTorch's number of threads until the scope ends. Then it is what it was, whatever was set.
class WithThreads {
 public:
  explicit WithThreads(int threads = at::get_num_threads()) : before_(at::get_num_threads()) {
    at::set_num_threads(threads);
  }

  WithThreads(const WithThreads&) = delete;
  WithThreads& operator=(const WithThreads&) = delete;

  ~WithThreads() { at::set_num_threads(before_); }

 private:
  int before_;
};

}  // namespace rondo::test
