#pragma once

#include <chrono>

namespace rondo {

/// Seconds since it was made; given a sum, it adds those of its life to it.
class Stopwatch {
 public:
  Stopwatch() = default;

  explicit Stopwatch(double& sum) : sum_(&sum) {}

  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  ~Stopwatch() {
    if (sum_ != nullptr) {
      *sum_ += seconds();
    }
  }

  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double* sum_ = nullptr;
};

}  // namespace rondo
