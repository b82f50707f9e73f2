#pragma once

#include <cstddef>

#include "tracing/kernels/avx512.h"

#if defined(__x86_64__)

namespace rondo {

/// Sixteen rows of sixteen floats, a register each.
struct Square {
  Floats rows[kWide];
};

/// The lanes below `count`.
RONDO_AVX512 inline __mmask16 first_lanes(int count) {
  if (count >= kWide) {
    return 0xFFFF;
  }
  return static_cast<__mmask16>(count > 0 ? (1 << count) - 1 : 0);
}

/// From a matrix whose rows are `row` floats apart; zero where it has none.
RONDO_AVX512 inline Square loaded(const float* first, ptrdiff_t row, int rows, int columns) {
  const __mmask16 mask = first_lanes(columns);
  Square square;
  RONDO_UNROLLED
  for (int i = 0; i < kWide; ++i) {
    square.rows[i] = _mm512_maskz_loadu_ps(i < rows ? mask : 0, first + (i < rows ? i : 0) * row);
  }
  return square;
}

/// Rows become columns: four by four within quarters of a register, then the quarters.
RONDO_AVX512 inline Square transposed(const Square& square) {
  Square quarters;
  RONDO_UNROLLED
  for (int i = 0; i < kWide; i += 4) {
    const Floats* const from = square.rows + i;
    const __m512d low01 = _mm512_castps_pd(_mm512_maskz_unpacklo_ps(kAll, from[0], from[1]));
    const __m512d low23 = _mm512_castps_pd(_mm512_maskz_unpacklo_ps(kAll, from[2], from[3]));
    const __m512d high01 = _mm512_castps_pd(_mm512_maskz_unpackhi_ps(kAll, from[0], from[1]));
    const __m512d high23 = _mm512_castps_pd(_mm512_maskz_unpackhi_ps(kAll, from[2], from[3]));
    quarters.rows[i] = _mm512_castpd_ps(_mm512_maskz_unpacklo_pd(kAllDoubles, low01, low23));
    quarters.rows[i + 1] = _mm512_castpd_ps(_mm512_maskz_unpackhi_pd(kAllDoubles, low01, low23));
    quarters.rows[i + 2] = _mm512_castpd_ps(_mm512_maskz_unpacklo_pd(kAllDoubles, high01, high23));
    quarters.rows[i + 3] = _mm512_castpd_ps(_mm512_maskz_unpackhi_pd(kAllDoubles, high01, high23));
  }
  constexpr int kEven = 0x88;  // quarters 0 and 2 of both
  constexpr int kOdd = 0xDD;
  Square result;
  RONDO_UNROLLED
  for (int i = 0; i < 4; ++i) {
    const Floats* const from = quarters.rows + i;
    const Floats even01 = _mm512_maskz_shuffle_f32x4(kAll, from[0], from[4], kEven);
    const Floats even23 = _mm512_maskz_shuffle_f32x4(kAll, from[8], from[12], kEven);
    const Floats odd01 = _mm512_maskz_shuffle_f32x4(kAll, from[0], from[4], kOdd);
    const Floats odd23 = _mm512_maskz_shuffle_f32x4(kAll, from[8], from[12], kOdd);
    result.rows[i] = _mm512_maskz_shuffle_f32x4(kAll, even01, even23, kEven);
    result.rows[i + 4] = _mm512_maskz_shuffle_f32x4(kAll, odd01, odd23, kEven);
    result.rows[i + 8] = _mm512_maskz_shuffle_f32x4(kAll, even01, even23, kOdd);
    result.rows[i + 12] = _mm512_maskz_shuffle_f32x4(kAll, odd01, odd23, kOdd);
  }
  return result;
}

}  // namespace rondo

#endif
