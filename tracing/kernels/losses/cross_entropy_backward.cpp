// The gradient of a mean of cross entropies: of each row the share that a class has, times what the
// row's label gets, and that once at the label. The sum of a row of which all but one number are
// zero is that number, in any order. Compiled with -ffp-contract=off (tracing/CMakeLists.txt).

#include <ATen/ops/_log_softmax_backward_data_cpu_dispatch.h>

#include <algorithm>
#include <utility>

#include "tracing/kernels/kernels.h"
#include "tracing/kernels/lanes.h"
#include "tracing/kernels/losses/labels.h"
#include "tracing/kernels/rows_or_libtorch.h"
#include "tracing/kernels/sleef.h"
#include "tracing/program/arguments.h"

namespace rondo {

namespace {

/// What the kernels below work on.
struct CrossEntropy {
  Operand gradient;    ///< of the mean: one number
  Operand logarithms;  ///< of softmax, [rows, classes]
  Operand label_data;
  Operand weight;  ///< rows that count
  Operand result;
  Labels shape;

  Labels labels() const {
    Labels labels = shape;
    labels.data = label_data.as<int64_t>();
    return labels;
  }

  /// What the label of each row gets from the mean.
  float of_label() const { return -(*gradient.as<float>() / *weight.as<float>()); }
};

/// LibTorch's gradient of the logarithms of softmax, past the dispatcher. Its argument lies where
/// its result is to be.
class InPlaceKernel final : public Kernel {
 public:
  InPlaceKernel(CrossEntropy of, at::Tensor logarithms, at::Tensor result)
      : of_(of), logarithms_(std::move(logarithms)), result_(std::move(result)) {}

  void run() override {
    of_.labels().write_at_class(of_.of_label(), of_.result.as<float>());
    at::cpu::_log_softmax_backward_data_out(result_, result_, logarithms_, 1, at::kFloat);
  }

 private:
  CrossEntropy of_;
  at::Tensor logarithms_;
  at::Tensor result_;
};

// (gradient, logarithms, labels, ignored, weight)
bool accepts(const StepProgram& program, const Instruction& instruction) {
  const std::vector<Argument>& arguments = instruction.arguments;
  const Slot* const logarithms = slot_at(program, arguments, 1);
  const Slot* const labels = slot_at(program, arguments, 2);
  const Slot* const result = slot_at(program, instruction.results, 0);
  return have_floats(program, arguments, {0, 4}, 1) && is_plain_float(logarithms) &&
         logarithms->sizes.size() == 2 && numel(*logarithms) > 0 && is_plain_float(result) &&
         result->sizes == logarithms->sizes && labels != nullptr && labels->dtype == at::kLong &&
         is_contiguous(*labels) && labels->sizes.size() == 1 &&
         labels->sizes[0] == logarithms->sizes[0] && is_integer(arguments[3]);
}

CrossEntropy operands_of(const StepProgram& program,
                         const Instruction& instruction,
                         const Operands& memory) {
  const std::vector<Argument>& arguments = instruction.arguments;
  const Slot& logarithms = *slot_at(program, arguments, 1);
  return {memory.operand(id_at(arguments, 0)),
          memory.operand(id_at(arguments, 1)),
          memory.operand(id_at(arguments, 2)),
          memory.operand(id_at(arguments, 4)),
          memory.operand(id_at(instruction.results, 0)),
          {nullptr, logarithms.sizes[0], logarithms.sizes[1], arguments[3].constant.toInt()}};
}

std::unique_ptr<Kernel> make_in_place(const StepProgram& program,
                                      const Instruction& instruction,
                                      const Operands& memory) {
  return std::make_unique<InPlaceKernel>(operands_of(program, instruction, memory),
                                         memory.tensor(id_at(instruction.arguments, 1)),
                                         memory.tensor(id_at(instruction.results, 0)));
}

constexpr OwnKernel kInPlace = {"rondo::cross_entropy_backward", accepts, make_in_place};

#if defined(__x86_64__)

SleefFunction exponential() {
  static const SleefFunction found = find_sleef("Sleef_expf16_u10");
  return found;
}

/// \tparam kIsFused  whether a product and its difference are rounded once
template <bool kIsFused>
class DirectKernel final : public Kernel {
 public:
  DirectKernel(CrossEntropy of, std::unique_ptr<Kernel> of_libtorch)
      : of_(of), of_libtorch_(std::move(of_libtorch)) {}

  void run() override {
    const Labels labels = of_.labels();
    for (int64_t row = 0; row < labels.count; ++row) {
      (void)labels[row];  // one that is none ends here, not in another thread
    }
    run_rows_or_libtorch(
        labels.count, labels.classes, *of_libtorch_, [&](int64_t begin, int64_t end) {
          return run_rows(labels, begin, end);
        });
  }

 private:
  static constexpr int64_t kBlock = 2048;  // elements that are worked on at a time: they stay in L1

  /// \return whether a NaN came out
  bool run_rows(const Labels& labels, int64_t begin, int64_t end) const {
    alignas(64) float shares[kBlock + kWide];
    bool is_odd = false;
    const int64_t rows_at_once = std::max<int64_t>(1, kBlock / labels.classes);
    for (int64_t row = begin; row < end; row += rows_at_once) {
      const int64_t elements = std::min(rows_at_once, end - row) * labels.classes;
      const int64_t first = row * labels.classes;
      for (int64_t done = 0; done < elements; done += kBlock) {
        const int64_t count = std::min(kBlock, elements - done);
        apply(exponential(), of_.logarithms.as<float>() + first + done, shares, count);
        write(labels, shares, row, done, count);
        is_odd = is_odd || has_nan(of_.result.as<float>() + first + done, count);
      }
    }
    return is_odd;
  }

  /// Some elements from a column of a row on: whole rows, or a part of one.
  RONDO_AVX2 void write(
      const Labels& labels, const float* shares, int64_t row, int64_t column, int64_t count) const {
    const float of_label = of_.of_label();
    // 0 + -0 is 0, and a row of one class has no zeros.
    const float sum_of_row = labels.classes == 1 ? of_label : of_label + 0.0F;
    float* y = of_.result.as<float>() + row * labels.classes + column;
    while (count > 0) {
      const int64_t width = std::min(labels.classes - column, count);
      const int64_t label = labels[row] - column;
      const float sum = labels[row] >= 0 ? sum_of_row : 0.0F;
      for (int64_t i = 0; i < width; ++i) {
        y[i] = without(0.0F, shares[i], sum);
      }
      if (label >= 0 && label < width) {
        y[label] = without(of_label, shares[label], sum);
      }
      y += width;
      shares += width;
      count -= width;
      column = 0;
      ++row;
    }
  }

  RONDO_AVX2 RONDO_INLINE static float without(float gradient, float share, float sum) {
    return kIsFused ? __builtin_fmaf(-share, sum, gradient) : gradient - share * sum;
  }

  CrossEntropy of_;
  std::unique_ptr<Kernel> of_libtorch_;
};

bool accepts_directly(const StepProgram& program, const Instruction& instruction) {
  return exponential() != nullptr && accepts(program, instruction);
}

template <bool kIsFused>
std::unique_ptr<Kernel> make_direct(const StepProgram& program,
                                    const Instruction& instruction,
                                    const Operands& memory) {
  return std::make_unique<DirectKernel<kIsFused>>(operands_of(program, instruction, memory),
                                                  make_in_place(program, instruction, memory));
}

#endif

}  // namespace

std::vector<OwnKernel> cross_entropy_backward_kernels() {
#if defined(__x86_64__)
  return {{kInPlace.op, accepts_directly, make_direct<true>},
          {kInPlace.op, accepts_directly, make_direct<false>},
          kInPlace};
#else
  return {kInPlace};
#endif
}

}  // namespace rondo
