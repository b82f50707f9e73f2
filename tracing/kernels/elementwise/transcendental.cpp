// Element-wise functions that LibTorch takes from Sleef, eight numbers at a time. Sleef's functions
// for sixteen do the same arithmetic and give the same bits, in half the time. Compiled with
// -ffp-contract=off (tracing/CMakeLists.txt): what LibTorch's AVX2 build fuses is written as
// `fma`.

#if defined(__x86_64__)

#include "tracing/kernels/elementwise/wide_functions.h"
#include "tracing/kernels/kernels.h"
#include "tracing/kernels/sleef.h"

namespace rondo {

namespace {

/// The functions of the Sleef that LibTorch was linked with; null when it hides them.
struct Sleef {
  SleefFunction exp;
  SleefFunction tanh;
};

const Sleef& sleef() {
  static const Sleef found = {find_sleef("Sleef_expf16_u10"), find_sleef("Sleef_tanhf16_u10")};
  return found;
}

bool can_run() {
  return sleef().exp != nullptr && sleef().tanh != nullptr;
}

// Each function: results for sixteen elements of its one or two arguments.
// Source: ATen/native/cpu/Activation.cpp and UnaryOpsKernel.cpp, BinaryOpsKernel.cpp.

struct Exp {
  RONDO_AVX512 static Floats of(Floats x) { return sleef().exp(x); }
};

struct Sigmoid {
  RONDO_AVX512 static Floats of(Floats x) {
    const Floats one = _mm512_set1_ps(1.0F);
    const Floats exponential = sleef().exp(_mm512_sub_ps(_mm512_setzero_ps(), x));
    return _mm512_div_ps(one, _mm512_add_ps(one, exponential));
  }
};

struct SigmoidBackward {
  RONDO_AVX512 static Floats of(Floats grad, Floats y) {
    const Floats one = _mm512_set1_ps(1.0F);
    return _mm512_mul_ps(_mm512_mul_ps(grad, _mm512_sub_ps(one, y)), y);
  }
};

struct Tanh {
  RONDO_AVX512 static Floats of(Floats x) { return sleef().tanh(x); }
};

struct TanhBackward {
  RONDO_AVX512 static Floats of(Floats grad, Floats y) {
    const Floats one = _mm512_set1_ps(1.0F);
    return _mm512_mul_ps(grad, _mm512_fnmadd_ps(y, y, one));
  }
};

bool accepts_one(const StepProgram& program, const Instruction& instruction) {
  return can_run() && wide_rows(program, instruction, 1);
}

bool accepts_two(const StepProgram& program, const Instruction& instruction) {
  return can_run() && wide_rows(program, instruction, 2);
}

}  // namespace

std::vector<OwnKernel> transcendental_kernels() {
  constexpr bool kInPlace = true;
  return {
      {"aten::exp", accepts_one, make_wide_unary<Exp>, 0, kInPlace},
      {"aten::sigmoid", accepts_one, make_wide_unary<Sigmoid>, 0, kInPlace},
      {"aten::sigmoid_", accepts_one, make_wide_unary<Sigmoid>},
      {"aten::sigmoid_backward", accepts_two, make_wide_binary<SigmoidBackward>, 0, kInPlace},
      {"aten::tanh", accepts_one, make_wide_unary<Tanh>, 0, kInPlace},
      {"aten::tanh_", accepts_one, make_wide_unary<Tanh>},
      {"aten::tanh_backward", accepts_two, make_wide_binary<TanhBackward>, 0, kInPlace},
  };
}

}  // namespace rondo

#else

#include "tracing/kernels/kernels.h"

namespace rondo {

std::vector<OwnKernel> transcendental_kernels() {
  return {};
}

}  // namespace rondo

#endif
