// Compiled with -ffp-contract=off (backends/CMakeLists.txt): what LibTorch's AVX2 build fuses is
// written as `fma`. See core/vector_loop.h.

#include <ATen/Parallel.h>

#include "backends/plan/kernels/arguments.h"
#include "backends/plan/kernels/kernels.h"
#include "backends/plan/kernels/lanes.h"
#include "core/vector_loop.h"

namespace rondo {

namespace {

// LibTorch adds the elements of a plane (one channel of one example) in eight lanes, each addition
// waiting for the last one, and the planes in double precision. Several planes side by side keep
// the order of each and do not wait.
// Source: batch_norm_cpu_backward_contiguous_impl, ATen/native/cpu/batch_norm_kernel.cpp.
constexpr int64_t kPlanes = 4;

/// What the gradients of one channel are made of.
struct Sums {
  double gradient = 0.0;  ///< of dy
  double product = 0.0;   ///< of (x - mean) * dy
};

/// How the compiler of LibTorch adds a product: Debian 12's rounds once, Debian 13's twice.
enum class ProductSum { Fused, Rounded };

/// Adds kCount planes, which lie `step` elements apart, to the sums.
template <ProductSum kSum, int64_t kCount>
RONDO_AVX2 void add_planes(
    const float* x, const float* dy, int64_t step, int64_t image, float mean, Sums& sums) {
  Lanes gradients[kCount];
  Lanes products[kCount];
  const Lanes means = mean - Lanes{};
  for (int64_t p = 0; p < kCount; ++p) {
    gradients[p] = load(dy + p * step);
    products[p] = (load(x + p * step) - means) * gradients[p];
  }
  const int64_t whole = image - image % kLanes;
  for (int64_t i = kLanes; i < whole; i += kLanes) {
    for (int64_t p = 0; p < kCount; ++p) {
      const Lanes gradient = load(dy + p * step + i);
      gradients[p] += gradient;
      const Lanes distance = load(x + p * step + i) - means;
      products[p] = kSum == ProductSum::Fused ? fused(distance, gradient, products[p])
                                              : products[p] + distance * gradient;
    }
  }
  for (int64_t p = 0; p < kCount; ++p) {
    for (int64_t i = whole; i < image; ++i) {
      const float gradient = dy[p * step + i];
      gradients[p][i - whole] += gradient;
      const float distance = x[p * step + i] - mean;
      products[p][i - whole] = kSum == ProductSum::Fused
                                   ? __builtin_fmaf(distance, gradient, products[p][i - whole])
                                   : products[p][i - whole] + distance * gradient;
    }
    sums.gradient += static_cast<double>(added_up(gradients[p]));
    sums.product += static_cast<double>(added_up(products[p]));
  }
}

/// Arguments and results.
struct Tensors {
  Operand dy;
  Operand x;
  Operand weight;
  Operand mean;
  Operand inverse_deviation;
  Operand dx;
  Operand dweight;
  Operand dbias;
};

/// Of a batch norm that was run in training.
template <ProductSum kSum>
class BatchNormBackwardKernel final : public Kernel {
 public:
  BatchNormBackwardKernel(const Tensors& tensors, int64_t batch, int64_t channels, int64_t image)
      : t_(tensors), batch_(batch), channels_(channels), image_(image) {}

  void run() override {
    at::parallel_for(0, channels_, 1, [this](int64_t begin, int64_t end) {
      for (int64_t channel = begin; channel < end; ++channel) {
        run_channel(channel);
      }
    });
  }

 private:
  void run_channel(int64_t channel) const {
    const float deviation = t_.inverse_deviation.as<float>()[channel];
    const Sums sums = sums_of(channel);
    t_.dweight.as<float>()[channel] =
        static_cast<float>(sums.product * static_cast<double>(deviation));
    t_.dbias.as<float>()[channel] = static_cast<float>(sums.gradient);
    const int64_t count = batch_ * image_;
    const float slope =
        static_cast<float>(sums.product) * deviation * deviation / static_cast<float>(count);
    const auto shift = static_cast<float>(sums.gradient / static_cast<double>(count));
    const float mean = t_.mean.as<float>()[channel];
    const float weight = t_.weight.as<float>()[channel];
    for (int64_t n = 0; n < batch_; ++n) {
      const int64_t plane = (n * channels_ + channel) * image_;
      const float* const x = t_.x.as<float>() + plane;
      const float* const dy = t_.dy.as<float>() + plane;
      float* const dx = t_.dx.as<float>() + plane;
      vector_loop(
          [=](int64_t i) RONDO_INLINE_LAMBDA {
            dx[i] = __builtin_fmaf(-(x[i] - mean), slope, dy[i] - shift) * deviation * weight;
          },
          image_);
    }
  }

  Sums sums_of(int64_t channel) const {
    const float* const x = t_.x.as<float>() + channel * image_;
    const float* const dy = t_.dy.as<float>() + channel * image_;
    const float mean = t_.mean.as<float>()[channel];
    const int64_t step = channels_ * image_;
    Sums sums;
    int64_t n = 0;
    for (; n + kPlanes <= batch_; n += kPlanes) {
      add_planes<kSum, kPlanes>(x + n * step, dy + n * step, step, image_, mean, sums);
    }
    for (; n < batch_; ++n) {
      add_planes<kSum, 1>(x + n * step, dy + n * step, step, image_, mean, sums);
    }
    return sums;
  }

  Tensors t_;
  int64_t batch_;
  int64_t channels_;
  int64_t image_;
};

// (grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, mask)
bool accepts(const StepProgram& program, const Instruction& instruction) {
  for (const size_t i : {0, 1, 2, 5, 6}) {
    if (!is_plain_float(slot_at(program, instruction.arguments, i))) {
      return false;
    }
  }
  for (const size_t i : {0, 1, 2}) {
    if (!is_plain_float(slot_at(program, instruction.results, i))) {
      return false;
    }
  }
  const Slot& x = *slot_at(program, instruction.arguments, 1);
  return widest_instruction_set() == InstructionSet::Avx2 &&
         is_constant(instruction.arguments[7], 1.0) && x.sizes.size() >= 3 && numel(x) > 0 &&
         numel(x) / (x.sizes[0] * x.sizes[1]) >= kLanes;
}

template <ProductSum kSum>
std::unique_ptr<Kernel> make(const StepProgram& program,
                             const Instruction& instruction,
                             const PlanMemory& memory) {
  const auto argument = [&](size_t i) { return memory.operand(id_at(instruction.arguments, i)); };
  const auto result = [&](size_t i) { return memory.operand(id_at(instruction.results, i)); };
  const Slot& x = *slot_at(program, instruction.arguments, 1);
  using Made = BatchNormBackwardKernel<kSum>;
  return std::make_unique<Made>(Tensors{argument(0),
                                        argument(1),
                                        argument(2),
                                        argument(5),
                                        argument(6),
                                        result(0),
                                        result(1),
                                        result(2)},
                                x.sizes[0],
                                x.sizes[1],
                                numel(x) / (x.sizes[0] * x.sizes[1]));
}

}  // namespace

std::vector<OwnKernel> batch_norm_backward_kernels() {
  return {{"aten::native_batch_norm_backward", accepts, make<ProductSum::Fused>},
          {"aten::native_batch_norm_backward", accepts, make<ProductSum::Rounded>}};
}

}  // namespace rondo
