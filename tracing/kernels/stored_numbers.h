#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <cstring>

#include "core/vector_loop.h"

namespace rondo {

// How numbers lie in memory. Kernels compute in float32, as LibTorch's vectors do: a bfloat16
// number is widened when it is read and rounded when it is written.

/// The upper half of a float32.
struct BFloat16Bits {
  uint16_t bits;
};

RONDO_INLINE float number_in(float number) {
  return number;
}

RONDO_INLINE float number_in(BFloat16Bits stored) {
  const uint32_t bits = static_cast<uint32_t>(stored.bits) << 16;
  float number = 0.0F;
  std::memcpy(&number, &bits, sizeof number);
  return number;
}

RONDO_INLINE void store(float number, float& to) {
  to = number;
}

/// To the nearest, half-way to an even one. Every NaN becomes the one that LibTorch's vectors give.
/// Source: cvtfp32_bf16, ATen/cpu/vec/vec256/vec256_bfloat16.h.
RONDO_INLINE void store(float number, BFloat16Bits& to) {
  uint32_t bits = 0;
  std::memcpy(&bits, &number, sizeof bits);
  const uint32_t rounded = (bits + (0x7FFFU + ((bits >> 16) & 1U))) >> 16;
  to.bits = static_cast<uint16_t>(number != number ? 0xFFFFU : rounded);
}

RONDO_INLINE float rounded(float number) {
  BFloat16Bits bits;
  store(number, bits);
  return number_in(bits);
}

#if defined(__x86_64__)

/// Vectors of 16-bit numbers have half of the instructions there.
inline bool has_wide_halves() {
  static const bool has =
      __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
      __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512dq") != 0;
  return has;
}

namespace detail {

template <class Element>
__attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma"))) void halves_loop(
    Element element, int64_t count) {
  RONDO_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) {
    element(i);
  }
}

}  // namespace detail

#else

inline bool has_wide_halves() {
  return false;
}

namespace detail {

template <class Element>
void halves_loop(Element, int64_t) {}

}  // namespace detail

#endif

/// `vector_loop`, for elements that are stored like this. The bits are the same on each machine.
template <class Stored, class Element>
void stored_loop(Element element, int64_t count) {
  if (sizeof(Stored) < sizeof(float) && has_wide_halves()) {
    detail::halves_loop(element, count);
  } else {
    vector_loop(element, count);
  }
}

/// Whether numbers of this dtype are stored as a type of this file: float32 or bfloat16.
inline bool is_stored(at::ScalarType dtype) {
  return dtype == at::kFloat || dtype == at::kBFloat16;
}

/// Calls `use(Stored())` for the type that numbers of this dtype, float32 or bfloat16, are stored
/// as.
template <class Use>
auto with_stored(at::ScalarType dtype, Use use) {
  return dtype == at::kBFloat16 ? use(BFloat16Bits()) : use(float());
}

}  // namespace rondo
