#pragma once

#include <cstdint>

#include "tracing/kernels/images/pair_pooling.h"
#include "tracing/kernels/lanes.h"
#include "tracing/program/step_program.h"

namespace rondo {

// What `rondo::batch_norm_relu_pool` keeps for its gradient, one byte a window: see
// operators/fused_operators.h.

/// Of a window whose largest element is zero or below; others, NaN among them, have 0 to 3.
inline constexpr int32_t kNoRoute = 4;

/// Of eight windows.
RONDO_AVX2 RONDO_INLINE LaneInts load_routes(const uint8_t* from) {
  LaneInts routes;
  for (int64_t i = 0; i < kLanes; ++i) {
    routes[i] = from[i];
  }
  return routes;
}

// GCC moves them one by one where it is told to convert all.
RONDO_AVX2 RONDO_INLINE void store_routes(LaneInts routes, uint8_t* to) {
#if defined(__x86_64__)
  const auto all = reinterpret_cast<__m256i>(routes);
  const __m128i words =
      _mm_packs_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packus_epi16(words, words));
#else
  for (int64_t i = 0; i < kLanes; ++i) {
    to[i] = static_cast<uint8_t>(routes[i]);
  }
#endif
}

/// Whether `largest` and `routes` have an element for each window of `x`, in the same layout (see
/// program/image.h), all of them without gaps.
bool fit_together(const Slot* x, const Slot* largest, const Slot* routes);

/// Of `x`.
PairedPlane plane_of(const Slot& x);

/// Brings the gradient of each window of a plane to the element that it belongs to; all others get
/// zero. Needs AVX2.
void spread(PairedPlane plane, const float* gradient, const uint8_t* routes, float* to);

}  // namespace rondo
