#pragma once

#if defined(__x86_64__)

#include <cstdint>

#include "tracing/kernels/avx512.h"
#include "tracing/kernels/lanes.h"

namespace rondo {

// Sums of rows, in the order of LibTorch's builds. Lanes beyond the end of a row stay as they are:
// adding zero would turn -0 into 0. For files as those of lanes.h.
// Source: reduce_all, ATen/cpu/vec/functional_base.h.

/// Rows of one width, one after another.
struct Rows2d {
  int64_t count;
  int64_t width;

  int64_t elements() const { return count * width; }
};

inline float sum_of_few(const float* x, int64_t count) {
  float sum = x[0];
  for (int64_t i = 1; i < count; ++i) {
    sum = sum + x[i];
  }
  return sum;
}

/// LibTorch 1.13, and later ones without AVX-512.
class EightLanes {
 public:
  RONDO_AVX2 static void sum(const float* x, Rows2d rows, float* sums) {
    for (int64_t row = 0; row < rows.count; ++row, x += rows.width) {
      sums[row] =
          rows.width < kLanes ? sum_of_few(x, rows.width) : EightLanes(x, rows.width).total();
    }
  }

  /// Begins with elements that fill the lanes at least.
  RONDO_AVX2 EightLanes(const float* x, int64_t count) : sums_(load(x)) {
    add(x + kLanes, count - kLanes);
  }

  /// Goes on with more, of which only the last may leave lanes without one.
  RONDO_AVX2 void add(const float* x, int64_t count) {
    Lanes sums = sums_;
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      sums = sums + load(x + i);
    }
    alignas(32) static constexpr int32_t kMasks[2 * kLanes] = {-1, -1, -1, -1, -1, -1, -1, -1};
    const __m256i left =
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kMasks + kLanes - (count - i)));
    const Lanes more = sums + _mm256_maskload_ps(x + i, left);
    sums_ = _mm256_blendv_ps(sums, more, _mm256_castsi256_ps(left));
  }

  RONDO_AVX2 float total() const { return added_up(sums_); }

 private:
  Lanes sums_;
};

/// LibTorch 2 with AVX-512.
class SixteenLanes {
 public:
  RONDO_AVX512 static void sum(const float* x, Rows2d rows, float* sums) {
    for (int64_t row = 0; row < rows.count; ++row, x += rows.width) {
      sums[row] =
          rows.width < kWide ? sum_of_few(x, rows.width) : SixteenLanes(x, rows.width).total();
    }
  }

  /// Begins with elements that fill the lanes at least.
  RONDO_AVX512 SixteenLanes(const float* x, int64_t count) : sums_(_mm512_loadu_ps(x)) {
    add(x + kWide, count - kWide);
  }

  /// Goes on with more, of which only the last may leave lanes without one.
  RONDO_AVX512 void add(const float* x, int64_t count) {
    __m512 sums = sums_;
    int64_t i = 0;
    for (; i + kWide <= count; i += kWide) {
      sums = _mm512_add_ps(sums, _mm512_loadu_ps(x + i));
    }
    const auto left = static_cast<__mmask16>((1U << (count - i)) - 1);
    sums_ = _mm512_mask_add_ps(sums, left, sums, _mm512_maskz_loadu_ps(left, x + i));
  }

  RONDO_AVX512 float total() const {
    alignas(64) float lanes[kWide];
    _mm512_store_ps(lanes, sums_);
    return added_up(load(lanes) + load(lanes + kLanes));
  }

 private:
  __m512 sums_;
};

}  // namespace rondo

#endif
