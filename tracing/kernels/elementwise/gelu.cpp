// GELU by the error function, which LibTorch takes from oneDNN. Its gradient has the arithmetic of
// oneDNN 2 and its bits; the function itself comes near them. Compiled with -ffp-contract=off
// (tracing/CMakeLists.txt): what oneDNN fuses is written as `fma`.

#if defined(__x86_64__)

#include "tracing/kernels/elementwise/wide_functions.h"
#include "tracing/kernels/kernels.h"

namespace rondo {

namespace {

// Where oneDNN has another approximation.
constexpr int kUlps = 64;

constexpr float kOverSqrtOfTwo = 0x1.6a09e6p-1F;
constexpr float kOverSqrtOfPi = 0x1.20dd74p-1F;  // oneDNN's, a bit below the nearest float

RONDO_AVX512 inline Floats all(float number) {
  return _mm512_set1_ps(number);
}

/// c[0] + c[1] x + c[2] x^2 + ...
template <size_t kCount>
RONDO_AVX512 inline Floats polynomial(const float (&coefficients)[kCount], Floats x) {
  Floats sum = all(coefficients[kCount - 1]);
  for (size_t i = kCount - 1; i > 0; --i) {
    sum = _mm512_fmadd_ps(sum, x, all(coefficients[i - 1]));
  }
  return sum;
}

/// e^x of an x that is not positive, as 2^n e^r where x = n ln(2) + r; 0 where that is no normal
/// number.
/// Source: jit_uni_eltwise_injector.cpp of oneDNN.
RONDO_AVX512 inline Floats exponential(Floats x) {
  constexpr float kSeries[] = {
      1.0F, 0x1.fffff6p-1F, 0x1.fffdc6p-2F, 0x1.555a8p-3F, 0x1.573a1ap-5F, 0x1.0f9f9cp-7F};
  const Floats least = all(-0x1.5d58ap+6F);  // ln of the smallest normal number
  const __mmask16 is_too_small = _mm512_cmp_ps_mask(x, least, _CMP_LT_OS);
  x = _mm512_mask_blend_ps(is_too_small, x, least);
  const Floats n = _mm512_floor_ps(_mm512_add_ps(_mm512_mul_ps(x, all(0x1.715476p+0F)), all(0.5F)));
  const Floats r = _mm512_fnmadd_ps(n, all(0x1.62e43p-1F), x);
  // Twice 2^(n - 1), as for an x whose 2^n is no number.
  const __m512i power = _mm512_maskz_cvtps_epi32(kAll, _mm512_sub_ps(n, all(1.0F)));
  const __m512i bits =
      _mm512_maskz_slli_epi32(kAll, _mm512_add_epi32(power, _mm512_set1_epi32(127)), 23);
  const Floats half =
      _mm512_mask_blend_ps(is_too_small, _mm512_castsi512_ps(bits), _mm512_setzero_ps());
  return _mm512_mul_ps(_mm512_mul_ps(polynomial(kSeries, r), half), all(2.0F));
}

/// The error function, and what it is made of.
struct ErrorFunction {
  Floats argument;
  Floats exponential;  ///< exp(-argument^2)
  Floats value;
};

/// The error function of x / sqrt(2), to 1.5e-7.
/// Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26.
RONDO_AVX512 inline ErrorFunction error_function_at(Floats x) {
  constexpr float kSeries[] = {
      0.254829592F, -0.284496736F, 1.421413741F, -1.453152027F, 1.061405429F};
  const Floats sign = all(-0.0F);
  const Floats argument = _mm512_mul_ps(x, all(kOverSqrtOfTwo));
  const Floats falling = exponential(_mm512_xor_ps(_mm512_mul_ps(argument, argument), sign));
  const Floats t = _mm512_div_ps(
      all(1.0F), _mm512_fmadd_ps(all(0.3275911F), _mm512_andnot_ps(sign, argument), all(1.0F)));
  const Floats tail = _mm512_mul_ps(_mm512_xor_ps(falling, sign), t);
  const Floats size = _mm512_fmadd_ps(tail, polynomial(kSeries, t), all(1.0F));
  return {argument, falling, _mm512_xor_ps(size, _mm512_and_ps(argument, sign))};
}

struct Gelu {
  RONDO_AVX512 static Floats of(Floats x) {
    const Floats integral = _mm512_fmadd_ps(error_function_at(x).value, all(0.5F), all(0.5F));
    return _mm512_mul_ps(x, integral);
  }
};

struct GeluBackward {
  RONDO_AVX512 static Floats of(Floats grad, Floats x) {
    const ErrorFunction error = error_function_at(x);
    const Floats density =
        _mm512_mul_ps(_mm512_mul_ps(error.argument, all(kOverSqrtOfPi)), error.exponential);
    const Floats slope = _mm512_fmadd_ps(error.value, all(0.5F), _mm512_add_ps(density, all(0.5F)));
    return _mm512_mul_ps(slope, grad);
  }
};

// The last argument says which formula; "none" is the one by the error function.
bool is_by_error_function(const Instruction& instruction) {
  const c10::IValue& approximate = instruction.arguments.back().constant;
  return approximate.isString() && approximate.toStringRef() == "none";
}

template <size_t kInputs>
bool accepts(const StepProgram& program, const Instruction& instruction) {
  return has_avx512() && wide_rows(program, instruction, kInputs) &&
         is_by_error_function(instruction);
}

}  // namespace

std::vector<OwnKernel> gelu_kernels() {
  constexpr bool kInPlace = true;
  constexpr auto kMakeBackward = make_wide_binary<GeluBackward>;
  return {{"aten::gelu", accepts<1>, make_wide_unary<Gelu>, kUlps, kInPlace},
          {"aten::gelu_backward", accepts<2>, kMakeBackward, 0, kInPlace},
          {"aten::gelu_backward", accepts<2>, kMakeBackward, kUlps, kInPlace}};
}

}  // namespace rondo

#else

#include "tracing/kernels/kernels.h"

namespace rondo {

std::vector<OwnKernel> gelu_kernels() {
  return {};
}

}  // namespace rondo

#endif
