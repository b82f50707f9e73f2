// Softmax and its logarithm over rows, many rows at a time: what LibTorch does row by row, with
// vectors that are mostly empty where rows are short. Each number goes through the same functions
// of Sleef, each sum in LibTorch's order. Compiled with -ffp-contract=off
// (tracing/CMakeLists.txt).

#if defined(__x86_64__)

#include <algorithm>
#include <utility>

#include "core/torch_compat.h"
#include "tracing/kernels/kernels.h"
#include "tracing/kernels/lanes.h"
#include "tracing/kernels/losses/row_sums.h"
#include "tracing/kernels/rows_or_libtorch.h"
#include "tracing/kernels/sleef.h"
#include "tracing/program/arguments.h"

namespace rondo {

namespace {

/// Where LibTorch gives other bits than any of these.
constexpr int kUlps = 4;

constexpr int64_t kWidth = 16;    // of Sleef's vectors
constexpr int64_t kBlock = 2048;  // elements that are worked on at a time: they stay in L1

SleefFunction exponential() {
  static const SleefFunction found = find_sleef("Sleef_expf16_u10");
  return found;
}

SleefFunction logarithm() {
  static const SleefFunction found = find_sleef("Sleef_logf16_u10");
  return found;
}

bool can_run() {
  return exponential() != nullptr && logarithm() != nullptr;
}

/// Of those that are numbers: where one is not, a NaN comes out of the row in any case.
RONDO_AVX2 float largest_of(const float* x, int64_t count) {
  float largest = x[0];
  int64_t i = 1;
  if (count >= kLanes) {
    __m256 all = _mm256_loadu_ps(x);
    for (i = kLanes; i + kLanes <= count; i += kLanes) {
      all = _mm256_max_ps(all, _mm256_loadu_ps(x + i));
    }
    alignas(32) float lanes[kLanes];
    _mm256_store_ps(lanes, all);
    largest = largest_of(lanes, kLanes - 1);
    largest = lanes[kLanes - 1] > largest ? lanes[kLanes - 1] : largest;
  }
  for (; i < count; ++i) {
    largest = x[i] > largest ? x[i] : largest;
  }
  return largest;
}

// Each function: what becomes of some rows that lie one after another.
// Source: ATen/native/cpu/SoftMaxKernel.cpp.

struct Arguments {
  const float* first;
  const float* second;  ///< of backward: what forward gave
  float* result;
};

struct Scratch {
  alignas(64) float elements[kBlock + kWidth];
  alignas(64) float of_rows[kBlock + kWidth];
};

/// result = x - largest
RONDO_AVX2 void shift(const Arguments& at, Rows2d rows, float* result) {
  for (int64_t row = 0; row < rows.count; ++row) {
    const float* const x = at.first + row * rows.width;
    float* const y = result + row * rows.width;
    const float largest = largest_of(x, rows.width);
    for (int64_t i = 0; i < rows.width; ++i) {
      y[i] = x[i] - largest;
    }
  }
}

template <class Sums>
struct LogSoftmax {
  RONDO_AVX2 static void of(const Arguments& at, Rows2d rows, Scratch& scratch) {
    shift(at, rows, at.result);
    apply(exponential(), at.result, scratch.elements, rows.elements());
    Sums::sum(scratch.elements, rows, scratch.of_rows);
    apply(logarithm(), scratch.of_rows, scratch.of_rows, rows.count);
    for (int64_t row = 0; row < rows.count; ++row) {
      float* const y = at.result + row * rows.width;
      const float logarithm_of_sum = scratch.of_rows[row];
      for (int64_t i = 0; i < rows.width; ++i) {
        y[i] = y[i] - logarithm_of_sum;
      }
    }
  }
};

template <class Sums>
struct Softmax {
  RONDO_AVX2 static void of(const Arguments& at, Rows2d rows, Scratch& scratch) {
    shift(at, rows, at.result);
    apply(exponential(), at.result, scratch.elements, rows.elements());
    Sums::sum(scratch.elements, rows, scratch.of_rows);
    for (int64_t row = 0; row < rows.count; ++row) {
      const float* const x = scratch.elements + row * rows.width;
      float* const y = at.result + row * rows.width;
      const float share = 1.0F / scratch.of_rows[row];
      for (int64_t i = 0; i < rows.width; ++i) {
        y[i] = x[i] * share;
      }
    }
  }
};

/// result = x - largest
/// \param to  the exponentials of that
RONDO_AVX2 void shift_block(
    const float* x, float largest, int64_t count, float* result, float* to) {
  for (int64_t i = 0; i < count; ++i) {
    result[i] = x[i] - largest;
  }
  apply(exponential(), result, to, count);
}

/// A row of more than a block: result = x - largest.
/// \return the sum of the exponentials of that
template <class Sums>
RONDO_AVX2 float shift_wide(const float* x, int64_t width, float* result, Scratch& scratch) {
  const float largest = largest_of(x, width);
  float* const exponentials = scratch.elements;
  shift_block(x, largest, kBlock, result, exponentials);
  Sums sum(exponentials, kBlock);
  for (int64_t at = kBlock; at < width; at += kBlock) {
    const int64_t count = std::min(kBlock, width - at);
    shift_block(x + at, largest, count, result + at, exponentials);
    sum.add(exponentials, count);
  }
  return sum.total();
}

/// The logarithm of softmax of a row of more than a block.
template <class Sums>
struct WideLogSoftmax {
  RONDO_AVX2 static void of(const float* x, int64_t width, float* y, Scratch& scratch) {
    const float sum = shift_wide<Sums>(x, width, y, scratch);
    apply(logarithm(), &sum, scratch.of_rows, 1);
    const float logarithm_of_sum = scratch.of_rows[0];
    for (int64_t i = 0; i < width; ++i) {
      y[i] = y[i] - logarithm_of_sum;
    }
  }
};

/// \tparam kIsFused  whether a product and its difference are rounded once
template <class Sums, bool kIsFused>
struct LogSoftmaxBackward {
  RONDO_AVX2 static void of(const Arguments& at, Rows2d rows, Scratch& scratch) {
    Sums::sum(at.first, rows, scratch.of_rows);
    apply(exponential(), at.second, scratch.elements, rows.elements());
    for (int64_t row = 0; row < rows.count; ++row) {
      const float* const grad = at.first + row * rows.width;
      const float* const share = scratch.elements + row * rows.width;
      float* const y = at.result + row * rows.width;
      const float sum = scratch.of_rows[row];
      for (int64_t i = 0; i < rows.width; ++i) {
        y[i] = kIsFused ? __builtin_fmaf(-share[i], sum, grad[i]) : grad[i] - share[i] * sum;
      }
    }
  }
};

template <class Function>
class RowsKernel final : public Kernel {
 public:
  RowsKernel(Operand first,
             Operand second,
             Operand result,
             Rows2d rows,
             std::unique_ptr<Kernel> of_libtorch)
      : first_(first),
        second_(second),
        result_(result),
        rows_(rows),
        of_libtorch_(std::move(of_libtorch)) {}

  void run() override {
    run_rows_or_libtorch(
        rows_.count, rows_.width, *of_libtorch_, [this](int64_t begin, int64_t end) {
          return run_rows(begin, end);
        });
  }

 private:
  /// \return whether a NaN came out
  bool run_rows(int64_t begin, int64_t end) {
    Scratch scratch;
    bool is_odd = false;
    const int64_t rows_of_block = kBlock / rows_.width;
    for (int64_t row = begin; row < end; row += rows_of_block) {
      const int64_t at = row * rows_.width;
      const Rows2d rows = {std::min(rows_of_block, end - row), rows_.width};
      const Arguments block = {
          first_.as<float>() + at, second_.as<float>() + at, result_.as<float>() + at};
      Function::of(block, rows, scratch);
      is_odd = is_odd || has_nan(block.result, rows.elements());
    }
    return is_odd;
  }

  Operand first_;
  Operand second_;
  Operand result_;
  Rows2d rows_;
  std::unique_ptr<Kernel> of_libtorch_;
};

/// Row by row, for rows of more than a block.
template <class Function>
class WideRowsKernel final : public Kernel {
 public:
  WideRowsKernel(Operand input, Operand result, Rows2d rows, std::unique_ptr<Kernel> of_libtorch)
      : input_(input), result_(result), rows_(rows), of_libtorch_(std::move(of_libtorch)) {}

  void run() override {
    run_rows_or_libtorch(
        rows_.count, rows_.width, *of_libtorch_, [this](int64_t begin, int64_t end) {
          return run_rows(begin, end);
        });
  }

 private:
  /// \return whether a NaN came out
  bool run_rows(int64_t begin, int64_t end) {
    Scratch scratch;
    bool is_odd = false;
    for (int64_t row = begin; row < end; ++row) {
      const int64_t at = row * rows_.width;
      float* const y = result_.as<float>() + at;
      Function::of(input_.as<float>() + at, rows_.width, y, scratch);
      is_odd = is_odd || has_nan(y, rows_.width);
    }
    return is_odd;
  }

  Operand input_;
  Operand result_;
  Rows2d rows_;
  std::unique_ptr<Kernel> of_libtorch_;
};

std::unique_ptr<Kernel> kernel_of_libtorch(const StepProgram& program,
                                           const Instruction& instruction,
                                           const Operands& memory) {
  for (const OwnKernel& own : softmax_kernels()) {
    if (operator_name(instruction.op) == own.op) {
      return own.make(program, instruction, memory);
    }
  }
  return nullptr;
}

Rows2d rows_of(const Slot& slot) {
  return {numel(slot) / slot.sizes.back(), slot.sizes.back()};
}

// (x, dim, half_to_float)
bool accepts_rows(const StepProgram& program, const Instruction& instruction, bool are_wide) {
  const Slot* const x = slot_at(program, instruction.arguments, 0);
  const Slot* const y = slot_at(program, instruction.results, 0);
  if (!can_run() || !is_plain_float(x) || !is_plain_float(y) || numel(*x) == 0 ||
      x->sizes.empty() || (x->sizes.back() > kBlock) != are_wide) {
    return false;
  }
  const auto rank = static_cast<int64_t>(x->sizes.size());
  const int64_t dim = instruction.arguments[1].constant.toInt();
  return dim == -1 || dim == rank - 1;
}

bool accepts_forward(const StepProgram& program, const Instruction& instruction) {
  return accepts_rows(program, instruction, /*are_wide=*/false);
}

bool accepts_wide(const StepProgram& program, const Instruction& instruction) {
  return accepts_rows(program, instruction, /*are_wide=*/true);
}

// (grad, output, dim, input_dtype)
bool accepts_backward(const StepProgram& program, const Instruction& instruction) {
  Instruction forward = instruction;
  forward.arguments.erase(forward.arguments.begin());
  return is_plain_float(slot_at(program, instruction.arguments, 0)) &&
         accepts_forward(program, forward);
}

/// \tparam kSecond  which argument forward gave; its only one where there is no backward
template <class Function, size_t kSecond>
std::unique_ptr<Kernel> make(const StepProgram& program,
                             const Instruction& instruction,
                             const Operands& memory) {
  return std::make_unique<RowsKernel<Function>>(
      memory.operand(id_at(instruction.arguments, 0)),
      memory.operand(id_at(instruction.arguments, kSecond)),
      memory.operand(id_at(instruction.results, 0)),
      rows_of(*slot_at(program, instruction.arguments, 0)),
      kernel_of_libtorch(program, instruction, memory));
}

template <class Function>
std::unique_ptr<Kernel> make_wide(const StepProgram& program,
                                  const Instruction& instruction,
                                  const Operands& memory) {
  return std::make_unique<WideRowsKernel<Function>>(
      memory.operand(id_at(instruction.arguments, 0)),
      memory.operand(id_at(instruction.results, 0)),
      rows_of(*slot_at(program, instruction.arguments, 0)),
      kernel_of_libtorch(program, instruction, memory));
}

template <class Sums>
std::vector<OwnKernel> kernels_of() {
  constexpr const char* kLogBackward = "aten::_log_softmax_backward_data";
  return {{"aten::_log_softmax", accepts_forward, make<LogSoftmax<Sums>, 0>},
          {"aten::_log_softmax", accepts_wide, make_wide<WideLogSoftmax<Sums>>},
          {"aten::_softmax", accepts_forward, make<Softmax<Sums>, 0>},
          {kLogBackward, accepts_backward, make<LogSoftmaxBackward<Sums, true>, 1>},
          {kLogBackward, accepts_backward, make<LogSoftmaxBackward<Sums, false>, 1>}};
}

}  // namespace

std::vector<OwnKernel> softmax_rows_kernels() {
  // The order of this LibTorch first: short rows may agree with the other one for a while.
  std::vector<OwnKernel> all = kernels_of<EightLanes>();
  std::vector<OwnKernel> others = kernels_of<SixteenLanes>();
  if (compat::sums_sixteen_lanes()) {
    all.swap(others);
  }
  // Inexact in the same order: in another one, sums that cancel out are further off than any bound.
  std::vector<OwnKernel> inexact = all;
  for (OwnKernel& own : inexact) {
    own.ulps = kUlps;
  }
  all.insert(all.end(), others.begin(), others.end());
  all.insert(all.end(), inexact.begin(), inexact.end());
  return all;
}

}  // namespace rondo

#else

#include "tracing/kernels/kernels.h"

namespace rondo {

std::vector<OwnKernel> softmax_rows_kernels() {
  return {};
}

}  // namespace rondo

#endif
