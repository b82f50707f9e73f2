// Element-wise functions that LibTorch takes from Sleef, eight numbers at a time. Sleef's functions
// for sixteen do the same arithmetic and give the same bits, in half the time. Compiled with
// -ffp-contract=off (backends/CMakeLists.txt): what LibTorch's AVX2 build fuses is written as
// `fma`.

#if defined(__x86_64__)

#include <cmath>
#include <optional>

#include "backends/plan/kernels/kernels.h"
#include "backends/plan/kernels/rows_kernel.h"
#include "backends/plan/kernels/sleef.h"
#include "backends/program/arguments.h"

namespace rondo {

namespace {

using Floats = __m512;

constexpr int64_t kWidth = 16;

// Of GELU, which LibTorch takes from oneDNN, by another approximation.
constexpr int kUlps = 64;

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

/// The normal distribution: its integral up to x, and its density without the constant.
struct Normal {
  Floats integral;
  Floats exponential;  ///< exp(-x^2 / 2)
};

/// To 1.5e-7, one exponential for both.
/// Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26.
RONDO_AVX512 inline Normal normal_at(Floats x) {
  const Floats one = _mm512_set1_ps(1.0F);
  const Floats square = _mm512_mul_ps(x, x);
  const Floats exponential = sleef().exp(_mm512_mul_ps(square, _mm512_set1_ps(-0.5F)));
  const Floats size = _mm512_abs_ps(x);
  const Floats t = _mm512_div_ps(
      one, _mm512_fmadd_ps(size, _mm512_set1_ps(static_cast<float>(0.3275911 * M_SQRT1_2)), one));
  Floats series = _mm512_set1_ps(1.061405429F);
  for (const float coefficient : {-1.453152027F, 1.421413741F, -0.284496736F, 0.254829592F}) {
    series = _mm512_fmadd_ps(series, t, _mm512_set1_ps(coefficient));
  }
  // Half of what lies beyond |x| on both sides.
  const Floats tail =
      _mm512_mul_ps(_mm512_set1_ps(0.5F), _mm512_mul_ps(_mm512_mul_ps(series, t), exponential));
  const __mmask16 is_negative = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ);
  return {_mm512_mask_blend_ps(is_negative, _mm512_sub_ps(one, tail), tail), exponential};
}

struct Gelu {
  RONDO_AVX512 static Floats of(Floats x) { return _mm512_mul_ps(x, normal_at(x).integral); }
};

struct GeluBackward {
  RONDO_AVX512 static Floats of(Floats grad, Floats x) {
    const Floats constant = _mm512_set1_ps(static_cast<float>(M_2_SQRTPI * M_SQRT1_2 * 0.5));
    const Normal normal = normal_at(x);
    const Floats density = _mm512_mul_ps(constant, normal.exponential);
    return _mm512_mul_ps(grad, _mm512_fmadd_ps(x, density, normal.integral));
  }
};

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

// The loops of a function of one vector, or of two.
template <class Function>
struct Loop {
  RONDO_AVX512 static void run(float* y, const float* x, int64_t count) {
    for (int64_t i = 0; i < count; i += kWidth) {
      _mm512_storeu_ps(y + i, Function::of(_mm512_loadu_ps(x + i)));
    }
  }

  RONDO_AVX512 static void run(float* y, const float* a, const float* b, int64_t count) {
    for (int64_t i = 0; i < count; i += kWidth) {
      _mm512_storeu_ps(y + i, Function::of(_mm512_loadu_ps(a + i), _mm512_loadu_ps(b + i)));
    }
  }
};

// In whole vectors: LibTorch computes what is left over by other functions.
std::optional<Rows> wide_rows(const StepProgram& program,
                              const Instruction& instruction,
                              size_t inputs) {
  const auto rows = float_rows(program, instruction, inputs);
  return rows && rows->width % kWidth == 0 ? rows : std::nullopt;
}

bool accepts_one(const StepProgram& program, const Instruction& instruction) {
  return can_run() && wide_rows(program, instruction, 1);
}

bool accepts_two(const StepProgram& program, const Instruction& instruction) {
  return can_run() && wide_rows(program, instruction, 2);
}

// The last argument says which formula; "none" is the integral of the normal distribution.
bool is_by_erf(const Instruction& instruction) {
  const c10::IValue& approximate = instruction.arguments.back().constant;
  return approximate.isString() && approximate.toStringRef() == "none";
}

bool accepts_gelu(const StepProgram& program, const Instruction& instruction) {
  return accepts_one(program, instruction) && is_by_erf(instruction);
}

bool accepts_gelu_backward(const StepProgram& program, const Instruction& instruction) {
  return accepts_two(program, instruction) && is_by_erf(instruction);
}

template <class Function>
std::unique_ptr<Kernel> make_one(const StepProgram& program,
                                 const Instruction& instruction,
                                 const PlanMemory& memory) {
  return std::make_unique<UnaryKernel<Loop<Function>>>(
      memory.operand(id_at(instruction.arguments, 0)),
      memory.operand(id_at(instruction.results, 0)),
      *wide_rows(program, instruction, 1));
}

template <class Function>
std::unique_ptr<Kernel> make_two(const StepProgram& program,
                                 const Instruction& instruction,
                                 const PlanMemory& memory) {
  return std::make_unique<BinaryKernel<Loop<Function>>>(
      memory.operand(id_at(instruction.arguments, 0)),
      memory.operand(id_at(instruction.arguments, 1)),
      memory.operand(id_at(instruction.results, 0)),
      *wide_rows(program, instruction, 2));
}

}  // namespace

std::vector<OwnKernel> transcendental_kernels() {
  constexpr bool kInPlace = true;
  return {
      {"aten::gelu", accepts_gelu, make_one<Gelu>, kUlps, kInPlace},
      {"aten::gelu_backward", accepts_gelu_backward, make_two<GeluBackward>, kUlps, kInPlace},
      {"aten::exp", accepts_one, make_one<Exp>, 0, kInPlace},
      {"aten::sigmoid", accepts_one, make_one<Sigmoid>, 0, kInPlace},
      {"aten::sigmoid_", accepts_one, make_one<Sigmoid>},
      {"aten::sigmoid_backward", accepts_two, make_two<SigmoidBackward>, 0, kInPlace},
      {"aten::tanh", accepts_one, make_one<Tanh>, 0, kInPlace},
      {"aten::tanh_", accepts_one, make_one<Tanh>},
      {"aten::tanh_backward", accepts_two, make_two<TanhBackward>, 0, kInPlace},
  };
}

}  // namespace rondo

#else

#include "backends/plan/kernels/kernels.h"

namespace rondo {

std::vector<OwnKernel> transcendental_kernels() {
  return {};
}

}  // namespace rondo

#endif
