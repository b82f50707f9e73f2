#pragma once

#include <cstdint>
#include <cstring>

#include "core/vector_loop.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rondo {

// Eight floats side by side, as LibTorch's AVX2 build reduces them. Files that use them are
// compiled with -ffp-contract=off and -Wno-psabi (tracing/CMakeLists.txt): all of it is inlined.

inline constexpr int64_t kLanes = 8;

using Lanes = float __attribute__((vector_size(kLanes * sizeof(float))));
using LaneInts = int32_t __attribute__((vector_size(kLanes * sizeof(int32_t))));

RONDO_AVX2 RONDO_INLINE Lanes load(const float* from) {
  Lanes lanes;
  std::memcpy(&lanes, from, sizeof(lanes));
  return lanes;
}

RONDO_AVX2 inline bool has_nan(const float* x, int64_t count) {
  int32_t found = 0;
  for (int64_t i = 0; i < count; ++i) {
    found |= x[i] != x[i] ? 1 : 0;
  }
  return found != 0;
}

/// a * b + c, rounded once.
RONDO_AVX2 RONDO_INLINE Lanes fused(Lanes a, Lanes b, Lanes c) {
  Lanes sum;
  for (int64_t i = 0; i < kLanes; ++i) {
    sum[i] = __builtin_fmaf(a[i], b[i], c[i]);
  }
  return sum;
}

/// How a compiler adds a product: rounded once, or twice. Builds of LibTorch differ, function by
/// function.
enum class ProductSum { Fused, Rounded };

/// a * b + c
template <ProductSum kSum>
RONDO_AVX2 RONDO_INLINE Lanes add_product(Lanes a, Lanes b, Lanes c) {
  return kSum == ProductSum::Fused ? fused(a, b, c) : c + a * b;
}

template <ProductSum kSum>
RONDO_AVX2 RONDO_INLINE float add_product(float a, float b, float c) {
  return kSum == ProductSum::Fused ? __builtin_fmaf(a, b, c) : c + a * b;
}

/// a > b ? a : b, in one instruction: b where one of them is NaN.
RONDO_AVX2 RONDO_INLINE Lanes larger(Lanes a, Lanes b) {
#if defined(__x86_64__)
  return _mm256_max_ps(a, b);
#else
  return a > b ? a : b;
#endif
}

/// Turns four rows into columns: column j has element j of each row in its low half, and element
/// j + 4 in its high half.
RONDO_AVX2 RONDO_INLINE void turn(const Lanes* rows, Lanes* columns) {
  const Lanes ab_low = __builtin_shufflevector(rows[0], rows[1], 0, 8, 1, 9, 4, 12, 5, 13);
  const Lanes ab_high = __builtin_shufflevector(rows[0], rows[1], 2, 10, 3, 11, 6, 14, 7, 15);
  const Lanes cd_low = __builtin_shufflevector(rows[2], rows[3], 0, 8, 1, 9, 4, 12, 5, 13);
  const Lanes cd_high = __builtin_shufflevector(rows[2], rows[3], 2, 10, 3, 11, 6, 14, 7, 15);
  columns[0] = __builtin_shufflevector(ab_low, cd_low, 0, 1, 8, 9, 4, 5, 12, 13);
  columns[1] = __builtin_shufflevector(ab_low, cd_low, 2, 3, 10, 11, 6, 7, 14, 15);
  columns[2] = __builtin_shufflevector(ab_high, cd_high, 0, 1, 8, 9, 4, 5, 12, 13);
  columns[3] = __builtin_shufflevector(ab_high, cd_high, 2, 3, 10, 11, 6, 7, 14, 15);
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
