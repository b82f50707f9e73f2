// Compiled with -ffp-contract=off (tracing/CMakeLists.txt): what LibTorch's AVX2 build fuses is
// written as `fma`. See core/vector_loop.h.

#include <ATen/Parallel.h>

#include <algorithm>
#include <vector>

#include "core/parallel.h"
#include "tracing/kernels/kernels.h"
#include "tracing/kernels/lanes.h"
#include "tracing/program/arguments.h"

namespace rondo {

namespace {

// The two sums of a row are added up in eight lanes, where each number waits for the one before.
// Several rows side by side keep the order of each and do not wait.
// Source: LayerNormBackwardKernelImplInternal, ATen/native/cpu/layer_norm_kernel.cpp.
constexpr int64_t kRows = 4;

/// Arguments and results.
struct Tensors {
  Operand dy;
  Operand x;
  Operand mean;
  Operand inverse_deviation;
  Operand weight;
  Operand dx;
  Operand dweight;
  Operand dbias;
};

/// What the gradient of an element follows from, besides its own numbers: a * dy * weight + b * x +
/// c.
struct Slope {
  float a;
  float b;
  float c;
};

/// \tparam kSum  how the two sums are added up, which builds of LibTorch differ in
template <ProductSum kSum>
class LayerNormBackwardKernel final : public Kernel {
 public:
  LayerNormBackwardKernel(const Tensors& tensors, int64_t rows, int64_t width)
      : t_(tensors), rows_(rows), width_(width) {}

  // As LibTorch does it, each thread adds up its own rows for the weight and the bias.
  void run() override {
    const int64_t threads = at::get_num_threads();
    sums_.resize(static_cast<size_t>(2 * threads * width_));
    std::fill(sums_.begin(), sums_.end(), 0.0F);
    parallel_for(rows_, 1, [this](int64_t begin, int64_t end) {
      float* const dweight = sums_.data() + 2 * at::get_thread_num() * width_;
      int64_t row = begin;
      for (; row + kRows <= end; row += kRows) {
        run_rows<kRows>(row, dweight, dweight + width_);
      }
      for (; row < end; ++row) {
        run_rows<1>(row, dweight, dweight + width_);
      }
    });
    add_threads(threads);
  }

  int64_t bytes() const override {
    return 2 * at::get_num_threads() * width_ * static_cast<int64_t>(sizeof(float));
  }

 private:
  template <int64_t kCount>
  RONDO_AVX2 void run_rows(int64_t first, float* dweight, float* dbias) const {
    Lanes products[kCount] = {};   // of dy, x and weight
    Lanes gradients[kCount] = {};  // of dy and weight
    const float* const weight = t_.weight.as<float>();
    for (int64_t i = 0; i < width_; i += kLanes) {
      const Lanes weights = load(weight + i);
      for (int64_t k = 0; k < kCount; ++k) {
        const int64_t place = (first + k) * width_ + i;
        const Lanes dy = load(t_.dy.as<float>() + place);
        const Lanes product = dy * load(t_.x.as<float>() + place);
        products[k] = i == 0 ? product * weights : add_product<kSum>(product, weights, products[k]);
        gradients[k] = i == 0 ? dy * weights : add_product<kSum>(dy, weights, gradients[k]);
      }
    }
    for (int64_t k = 0; k < kCount; ++k) {
      finish_row(first + k, slope_of(first + k, products[k], gradients[k]), dweight, dbias);
    }
  }

  RONDO_AVX2 RONDO_INLINE Slope slope_of(int64_t row, Lanes products, Lanes gradients) const {
    const float mean = t_.mean.as<float>()[row];
    const float a = t_.inverse_deviation.as<float>()[row];
    const float share = 1.0F / static_cast<float>(width_);
    const float ds = added_up(products);
    const float db = added_up(gradients);
    const float b = __builtin_fmaf(db, mean, -ds) * a * a * a * share;
    return {a, b, __builtin_fmaf(-b, mean, -(db * a * share))};
  }

  RONDO_AVX2 RONDO_INLINE void finish_row(int64_t row,
                                          const Slope& slope,
                                          float* dweight,
                                          float* dbias) const {
    const float* const dy = t_.dy.as<float>() + row * width_;
    const float* const x = t_.x.as<float>() + row * width_;
    const float* const weight = t_.weight.as<float>();
    float* const dx = t_.dx.as<float>() + row * width_;
    const auto [a, b, c] = slope;
    const float centre = -a * t_.mean.as<float>()[row];
    RONDO_INDEPENDENT
    for (int64_t i = 0; i < width_; ++i) {
      dweight[i] = __builtin_fmaf(dy[i], __builtin_fmaf(a, x[i], centre), dweight[i]);
      dbias[i] += dy[i];
      dx[i] = __builtin_fmaf(b, x[i], a * dy[i] * weight[i]) + c;
    }
  }

  void add_threads(int64_t threads) const {
    for (int64_t i = 0; i < width_; ++i) {
      float dweight = 0.0F;
      float dbias = 0.0F;
      for (int64_t thread = 0; thread < threads; ++thread) {
        const float* const of = sums_.data() + 2 * thread * width_ + i;
        dweight += of[0];
        dbias += of[width_];
      }
      t_.dweight.as<float>()[i] = dweight;
      t_.dbias.as<float>()[i] = dbias;
    }
  }

  Tensors t_;
  int64_t rows_;
  int64_t width_;            // a multiple of a vector's
  std::vector<float> sums_;  // for each thread, of weight and bias
};

// (grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask)
bool accepts(const StepProgram& program, const Instruction& instruction) {
  if (!are_plain_floats(program, instruction.arguments, {0, 1, 3, 4, 5}) ||
      !are_plain_floats(program, instruction.results, {0, 1, 2})) {
    return false;
  }
  const Slot& x = *slot_at(program, instruction.arguments, 1);
  const int64_t width = numel(*slot_at(program, instruction.arguments, 5));
  return widest_instruction_set() == InstructionSet::Avx2 && numel(x) > 0 && width > 0 &&
         width % kLanes == 0 && numel(x) % width == 0 &&
         slot_at(program, instruction.arguments, 0)->sizes == x.sizes &&
         slot_at(program, instruction.results, 0)->sizes == x.sizes &&
         have_floats(program, instruction.arguments, {3, 4}, numel(x) / width) &&
         have_floats(program, instruction.results, {1, 2}, width);
}

template <ProductSum kSum>
std::unique_ptr<Kernel> make(const StepProgram& program,
                             const Instruction& instruction,
                             const Operands& memory) {
  const auto argument = [&](size_t i) { return memory.operand(id_at(instruction.arguments, i)); };
  const auto result = [&](size_t i) { return memory.operand(id_at(instruction.results, i)); };
  const int64_t width = numel(*slot_at(program, instruction.arguments, 5));
  return std::make_unique<LayerNormBackwardKernel<kSum>>(
      Tensors{argument(0),
              argument(1),
              argument(3),
              argument(4),
              argument(5),
              result(0),
              result(1),
              result(2)},
      numel(*slot_at(program, instruction.arguments, 1)) / width,
      width);
}

}  // namespace

std::vector<OwnKernel> layer_norm_backward_kernels() {
  const char* const op = "aten::native_layer_norm_backward";
  return {{op, accepts, make<ProductSum::Fused>}, {op, accepts, make<ProductSum::Rounded>}};
}

}  // namespace rondo
