// Element-wise functions that LibTorch takes from Sleef, eight numbers at a time. Sleef's functions
// for sixteen do the same arithmetic and give the same bits, in half the time. Compiled with
// -ffp-contract=off (backends/CMakeLists.txt): what LibTorch's AVX2 build fuses is written as
// `fma`.

#if defined(__x86_64__)

#include <dlfcn.h>
#include <immintrin.h>

#include <cmath>
#include <optional>

#include "backends/plan/kernels/arguments.h"
#include "backends/plan/kernels/kernels.h"

namespace rondo {

namespace {

#define RONDO_AVX512 __attribute__((target("avx512f,avx512dq")))

using Floats = __m512;
using SleefFunction = Floats (*)(Floats);

constexpr int64_t kWidth = 16;

// Of GELU, which LibTorch takes from oneDNN, by another approximation.
constexpr int kUlps = 64;

/// The functions of the Sleef that LibTorch was linked with; null when it hides them.
struct Sleef {
  SleefFunction exp;
  SleefFunction tanh;
};

SleefFunction find(const char* name) {
  return reinterpret_cast<SleefFunction>(::dlsym(RTLD_DEFAULT, name));
}

const Sleef& sleef() {
  static const Sleef found = {find("Sleef_expf16_u10"), find("Sleef_tanhf16_u10")};
  return found;
}

bool can_run() {
  static const bool is_there = __builtin_cpu_supports("avx512f") != 0 &&
                               __builtin_cpu_supports("avx512dq") != 0 && sleef().exp != nullptr &&
                               sleef().tanh != nullptr;
  return is_there;
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

/// Rows of elements that lie side by side, as a part of a wider matrix has them.
struct Rows {
  int64_t count;
  int64_t width;
  int64_t from;  ///< elements from one row to the next of the argument
  int64_t to;    ///< of the result
};

template <class Function>
class UnaryKernel final : public Kernel {
 public:
  UnaryKernel(Operand input, Operand result, const Rows& rows)
      : input_(input), result_(result), rows_(rows) {}

  RONDO_AVX512 void run() override {
    const float* x = input_.as<float>();
    float* y = result_.as<float>();
    for (int64_t r = 0; r < rows_.count; ++r, x += rows_.from, y += rows_.to) {
      for (int64_t i = 0; i < rows_.width; i += kWidth) {
        _mm512_storeu_ps(y + i, Function::of(_mm512_loadu_ps(x + i)));
      }
    }
  }

 private:
  Operand input_;
  Operand result_;
  Rows rows_;
};

template <class Function>
class BinaryKernel final : public Kernel {
 public:
  BinaryKernel(Operand a, Operand b, Operand result, int64_t count)
      : a_(a), b_(b), result_(result), count_(count) {}

  RONDO_AVX512 void run() override {
    const float* const a = a_.as<float>();
    const float* const b = b_.as<float>();
    float* const y = result_.as<float>();
    for (int64_t i = 0; i < count_; i += kWidth) {
      _mm512_storeu_ps(y + i, Function::of(_mm512_loadu_ps(a + i), _mm512_loadu_ps(b + i)));
    }
  }

 private:
  Operand a_;
  Operand b_;
  Operand result_;
  int64_t count_;
};

// Row after row, in whole vectors: LibTorch computes what is left over by other functions.
bool is_wide(const Slot* slot) {
  return is_plain_float(slot) && numel(*slot) > 0 && numel(*slot) % kWidth == 0;
}

// Whole vectors in one row, or in each row of a matrix.
std::optional<Rows> rows_of(const Slot* from, const Slot* to) {
  if (is_wide(from) && is_wide(to)) {
    return Rows{1, numel(*from), 0, 0};
  }
  const auto is_part = [](const Slot* slot) {
    return slot != nullptr && slot->dtype == at::kFloat && slot->sizes.size() == 2 &&
           slot->sizes[0] > 0 && slot->sizes[1] > 0 && slot->sizes[1] % kWidth == 0 &&
           slot->strides[1] == 1;
  };
  if (!is_part(from) || !is_part(to)) {
    return std::nullopt;
  }
  return Rows{from->sizes[0], from->sizes[1], from->strides[0], to->strides[0]};
}

bool accepts_one(const StepProgram& program, const Instruction& instruction) {
  return can_run() && rows_of(slot_at(program, instruction.arguments, 0),
                              slot_at(program, instruction.results, 0));
}

bool accepts_in_place(const StepProgram& program, const Instruction& instruction) {
  const Slot* const x = slot_at(program, instruction.arguments, 0);
  return can_run() && rows_of(x, x);
}

bool accepts_two(const StepProgram& program, const Instruction& instruction) {
  const Slot* const a = slot_at(program, instruction.arguments, 0);
  const Slot* const b = slot_at(program, instruction.arguments, 1);
  return can_run() && is_wide(a) && is_wide(b) && a->sizes == b->sizes &&
         is_wide(slot_at(program, instruction.results, 0));
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
  return std::make_unique<UnaryKernel<Function>>(
      memory.operand(id_at(instruction.arguments, 0)),
      memory.operand(id_at(instruction.results, 0)),
      *rows_of(slot_at(program, instruction.arguments, 0),
               slot_at(program, instruction.results, 0)));
}

template <class Function>
std::unique_ptr<Kernel> make_in_place(const StepProgram& program,
                                      const Instruction& instruction,
                                      const PlanMemory& memory) {
  const Operand x = memory.operand(id_at(instruction.arguments, 0));
  const Slot* const slot = slot_at(program, instruction.arguments, 0);
  return std::make_unique<UnaryKernel<Function>>(x, x, *rows_of(slot, slot));
}

template <class Function>
std::unique_ptr<Kernel> make_two(const StepProgram& program,
                                 const Instruction& instruction,
                                 const PlanMemory& memory) {
  return std::make_unique<BinaryKernel<Function>>(
      memory.operand(id_at(instruction.arguments, 0)),
      memory.operand(id_at(instruction.arguments, 1)),
      memory.operand(id_at(instruction.results, 0)),
      numel(*slot_at(program, instruction.arguments, 0)));
}

}  // namespace

std::vector<OwnKernel> transcendental_kernels() {
  constexpr bool kInPlace = true;
  return {
      {"aten::gelu", accepts_gelu, make_one<Gelu>, kUlps, kInPlace},
      {"aten::gelu_backward", accepts_gelu_backward, make_two<GeluBackward>, kUlps, kInPlace},
      {"aten::sigmoid", accepts_one, make_one<Sigmoid>, 0, kInPlace},
      {"aten::sigmoid_", accepts_in_place, make_in_place<Sigmoid>},
      {"aten::sigmoid_backward", accepts_two, make_two<SigmoidBackward>, 0, kInPlace},
      {"aten::tanh", accepts_one, make_one<Tanh>, 0, kInPlace},
      {"aten::tanh_", accepts_in_place, make_in_place<Tanh>},
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
