#pragma once

#include <atomic>
#include <cstdint>

#include "core/parallel.h"
#include "tracing/kernels/kernel.h"

namespace rondo {

/// Calls `run_rows(begin, end)` for parts of some rows, on LibTorch's threads; it returns whether a
/// NaN came out. Which of its bits a NaN gets depends on more than the functions that it goes
/// through: where there is one, `of_libtorch` does all rows again.
template <class RunRows>
void run_rows_or_libtorch(int64_t rows,
                          int64_t width,
                          Kernel& of_libtorch,
                          const RunRows& run_rows) {
  std::atomic<bool> is_odd{false};
  parallel_for(rows, grain_of(width), [&](int64_t begin, int64_t end) {
    if (run_rows(begin, end)) {
      is_odd = true;
    }
  });
  if (is_odd) {
    of_libtorch.run();
  }
}

}  // namespace rondo
