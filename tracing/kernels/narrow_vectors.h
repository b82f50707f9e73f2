#pragma once

#if defined(__x86_64__)

#include "tracing/kernels/avx512.h"
#include "tracing/kernels/stored_numbers.h"

namespace rondo {

// Sixteen numbers of bfloat16 at a time, for functions compiled with RONDO_AVX512.

RONDO_AVX512 inline Floats widened(const BFloat16Bits* from) {
  const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return _mm512_castsi512_ps(
      _mm512_maskz_slli_epi32(kAll, _mm512_maskz_cvtepu16_epi32(kAll, halves), 16));
}

/// Rounds as `store` does.
RONDO_AVX512 inline void put_rounded(Floats numbers, BFloat16Bits* to) {
  const __m512i bits = _mm512_castps_si512(numbers);
  const __m512i is_odd =
      _mm512_and_si512(_mm512_maskz_srli_epi32(kAll, bits, 16), _mm512_set1_epi32(1));
  const __m512i bias = _mm512_add_epi32(is_odd, _mm512_set1_epi32(0x7FFF));
  const __m512i rounded = _mm512_maskz_srli_epi32(kAll, _mm512_add_epi32(bits, bias), 16);
  const __mmask16 is_nan = _mm512_cmp_ps_mask(numbers, numbers, _CMP_UNORD_Q);
  const __m512i all = _mm512_mask_blend_epi32(is_nan, rounded, _mm512_set1_epi32(0xFFFF));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_maskz_cvtepi32_epi16(kAll, all));
}

}  // namespace rondo

#endif
