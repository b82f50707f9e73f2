#pragma once

#include <cstdint>
#include <cstring>

#include "core/vector_loop.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rondo {

// Eight floats side by side, as LibTorch's AVX2 build reduces them. Files that use them are
// compiled with -ffp-contract=off and -Wno-psabi (backends/CMakeLists.txt): all of it is inlined.

inline constexpr int64_t kLanes = 8;

using Lanes = float __attribute__((vector_size(kLanes * sizeof(float))));
using LaneInts = int32_t __attribute__((vector_size(kLanes * sizeof(int32_t))));

RONDO_AVX2 RONDO_INLINE Lanes load(const float* from) {
  Lanes lanes;
  std::memcpy(&lanes, from, sizeof(lanes));
  return lanes;
}

/// a * b + c, rounded once.
RONDO_AVX2 RONDO_INLINE Lanes fused(Lanes a, Lanes b, Lanes c) {
  Lanes sum;
  for (int64_t i = 0; i < kLanes; ++i) {
    sum[i] = __builtin_fmaf(a[i], b[i], c[i]);
  }
  return sum;
}

/// a > b ? a : b, in one instruction: b where one of them is NaN.
RONDO_AVX2 RONDO_INLINE Lanes larger(Lanes a, Lanes b) {
#if defined(__x86_64__)
  return _mm256_max_ps(a, b);
#else
  return a > b ? a : b;
#endif
}

/// Halves, quarters, neighbours.
/// Source: VecReduceAllSIMD, ATen/cpu/vec/functional_base.h.
RONDO_AVX2 RONDO_INLINE float added_up(Lanes lanes) {
  for (int64_t distance = kLanes / 2; distance > 0; distance /= 2) {
    for (int64_t i = 0; i < distance; ++i) {
      lanes[i] = lanes[i] + lanes[i + distance];
    }
  }
  return lanes[0];
}

}  // namespace rondo
