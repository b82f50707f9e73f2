// Softmax of bfloat16 over rows of whole vectors, and its gradient. LibTorch widens what it reads,
// computes in float32 and rounds what it writes. Compiled with
// -ffp-contract=off (tracing/CMakeLists.txt).

#if defined(__x86_64__)

#include <string>

#include "backends/numeric_environment.h"
#include "core/parallel.h"
#include "tracing/kernels/kernels.h"
#include "tracing/kernels/losses/row_sums.h"
#include "tracing/kernels/narrow_vectors.h"
#include "tracing/kernels/sleef.h"
#include "tracing/program/arguments.h"

namespace rondo {

namespace {

constexpr int64_t kMostColumns = 4096;  // of a row, whose exponentials lie on the stack

SleefFunction exponential() {
  static const SleefFunction found = find_sleef("Sleef_expf16_u10");
  return found;
}

struct Arguments {
  const BFloat16Bits* first;
  const BFloat16Bits* second;  ///< of backward: what forward gave
  BFloat16Bits* result;
};

RONDO_AVX512 inline float largest_of(const BFloat16Bits* x, int64_t width) {
  Floats most = widened(x);
  for (int64_t i = kWide; i < width; i += kWide) {
    most = _mm512_maskz_max_ps(kAll, most, widened(x + i));
  }
  alignas(64) float lanes[kWide];
  _mm512_store_ps(lanes, most);
  float largest = lanes[0];
  for (int i = 1; i < kWide; ++i) {
    largest = lanes[i] > largest ? lanes[i] : largest;
  }
  return largest;
}

// Each function: what becomes of one row.
// Source: _vec_softmax_lastdim<BFloat16> and _vec_host_softmax_backward_lastdim,
// ATen/native/cpu/SoftMaxKernel.cpp.

template <class Sums>
struct Softmax {
  RONDO_AVX512 static void of(const Arguments& at, int64_t width) {
    const SleefFunction exp = exponential();
    const Floats largest = _mm512_set1_ps(largest_of(at.first, width));
    alignas(64) float exponentials[kMostColumns];
    for (int64_t i = 0; i < width; i += kWide) {
      _mm512_store_ps(exponentials + i, exp(_mm512_sub_ps(widened(at.first + i), largest)));
    }
    float sum = 0.0F;
    Sums::sum(exponentials, {1, width}, &sum);
    const Floats share = _mm512_set1_ps(1.0F / sum);
    for (int64_t i = 0; i < width; i += kWide) {
      put_rounded(_mm512_mul_ps(_mm512_load_ps(exponentials + i), share), at.result + i);
    }
  }
};

RONDO_AVX512 inline Floats product_of(const Arguments& at, int64_t i) {
  return _mm512_mul_ps(widened(at.first + i), widened(at.second + i));
}

/// The sum has two accumulators, which take turns: two halves of a register, or two registers where
/// LibTorch's vectors are as wide. Products of two numbers of bfloat16 are exact.
/// Source: map2_reduce_all, ATen/cpu/vec/functional_bfloat16.h.
/// \tparam kRounds  whether the sum is rounded to bfloat16: versions of LibTorch differ
template <int kRegisters, bool kRounds>
struct SoftmaxBackward {
  static constexpr int64_t kStep = kRegisters * kWide;

  RONDO_AVX512 static void of(const Arguments& at, int64_t width) {
    constexpr int64_t kOdd = (kRegisters - 1) * kWide;
    Floats even = product_of(at, 0);
    Floats odd = product_of(at, kOdd);
    for (int64_t i = kStep; i < width; i += kStep) {
      even = _mm512_add_ps(even, product_of(at, i));
      odd = _mm512_add_ps(odd, product_of(at, i + kOdd));
    }
    const Floats all = kRegisters == 1 ? even : _mm512_add_ps(even, odd);
    alignas(64) float lanes[kWide];
    _mm512_store_ps(lanes, all);
    const float total = added_up(load(lanes) + load(lanes + kLanes));
    const Floats sum = _mm512_set1_ps(kRounds ? rounded(total) : total);
    for (int64_t i = 0; i < width; i += kWide) {
      const Floats difference = _mm512_sub_ps(widened(at.first + i), sum);
      put_rounded(_mm512_mul_ps(difference, widened(at.second + i)), at.result + i);
    }
  }
};

template <class Function>
class NarrowRowsKernel final : public Kernel {
 public:
  NarrowRowsKernel(Operand first, Operand second, Operand result, Rows2d rows)
      : first_(first), second_(second), result_(result), rows_(rows) {}

  void run() override {
    parallel_for_each(rows_.count, rows_.width, [this](int64_t row) {
      const int64_t at = row * rows_.width;
      Function::of({first_.as<BFloat16Bits>() + at,
                    second_.as<BFloat16Bits>() + at,
                    result_.as<BFloat16Bits>() + at},
                   rows_.width);
    });
  }

 private:
  Operand first_;
  Operand second_;
  Operand result_;
  Rows2d rows_;
};

bool is_plain_narrow(const Slot* slot) {
  return slot != nullptr && slot->dtype == at::kBFloat16 && is_contiguous(*slot);
}

/// Rows of whole steps: the rest is added up in another order.
bool accepts_rows(const Slot* x, const Slot* y, const Argument& dim, int64_t step) {
  if (!has_avx512() || !is_plain_narrow(x) || !is_plain_narrow(y) || x->sizes != y->sizes ||
      x->sizes.empty() || numel(*x) == 0 || !is_integer(dim)) {
    return false;
  }
  const int64_t width = x->sizes.back();
  const auto last = static_cast<int64_t>(x->sizes.size()) - 1;
  const int64_t at = dim.constant.toInt();
  return (at == -1 || at == last) && width % step == 0 && width <= kMostColumns;
}

// (x, dim, half_to_float)
bool accepts_forward(const StepProgram& program, const Instruction& instruction) {
  return exponential() != nullptr && accepts_rows(slot_at(program, instruction.arguments, 0),
                                                  slot_at(program, instruction.results, 0),
                                                  instruction.arguments[1],
                                                  kWide);
}

// (grad, output, dim, input_dtype)
template <int kRegisters>
bool accepts_backward(const StepProgram& program, const Instruction& instruction) {
  const Slot* const grad = slot_at(program, instruction.arguments, 0);
  const Slot* const output = slot_at(program, instruction.arguments, 1);
  return accepts_rows(grad,
                      slot_at(program, instruction.results, 0),
                      instruction.arguments[2],
                      kRegisters * kWide) &&
         is_plain_narrow(output) && output->sizes == grad->sizes;
}

/// \tparam kSecond  which argument forward gave; its only one where there is no backward
template <class Function, size_t kSecond>
std::unique_ptr<Kernel> make(const StepProgram& program,
                             const Instruction& instruction,
                             const Operands& memory) {
  const Slot& result = *slot_at(program, instruction.results, 0);
  return std::make_unique<NarrowRowsKernel<Function>>(
      memory.operand(id_at(instruction.arguments, 0)),
      memory.operand(id_at(instruction.arguments, kSecond)),
      memory.operand(id_at(instruction.results, 0)),
      Rows2d{numel(result) / result.sizes.back(), result.sizes.back()});
}

}  // namespace

std::vector<OwnKernel> narrow_softmax_kernels() {
  // Only in the order of this LibTorch's vectors: rounded results hide most differences between
  // orders from a probe.
  constexpr const char* kBackward = "aten::_softmax_backward_data";
  const std::string capability = current_environment().cpu_capability;
  if (capability == "AVX512") {
    return {{"aten::_softmax", accepts_forward, make<Softmax<SixteenLanes>, 0>},
            {kBackward, accepts_backward<2>, make<SoftmaxBackward<2, true>, 1>},
            {kBackward, accepts_backward<2>, make<SoftmaxBackward<2, false>, 1>}};
  }
  if (capability == "AVX2") {
    return {{"aten::_softmax", accepts_forward, make<Softmax<EightLanes>, 0>},
            {kBackward, accepts_backward<1>, make<SoftmaxBackward<1, true>, 1>},
            {kBackward, accepts_backward<1>, make<SoftmaxBackward<1, false>, 1>}};
  }
  return {};
}

}  // namespace rondo

#else

#include "tracing/kernels/kernels.h"

namespace rondo {

std::vector<OwnKernel> narrow_softmax_kernels() {
  return {};
}

}  // namespace rondo

#endif
