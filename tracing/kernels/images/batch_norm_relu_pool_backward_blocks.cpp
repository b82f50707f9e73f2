// Compiled with -ffp-contract=off (tracing/CMakeLists.txt), see core/vector_loop.h.

#include "tracing/kernels/images/batch_norm_relu_pool.h"
#include "tracing/kernels/kernels.h"
#include "tracing/kernels/norms/batch_norm_gradient_blocks.h"
#include "tracing/program/arguments.h"

namespace rondo {

namespace {

// See batch_norm_relu_pool_backward.cpp: the same of images whose channels lie side by side in
// blocks.

/// The gradient of a pooling, which is never written: both looks at it go from the windows.
template <int64_t kBundles>
class PooledGradient {
 public:
  PooledGradient(Operand gradient, Operand routes, PairedPlane plane)
      : gradient_(gradient), routes_(routes), plane_(plane) {}

  int64_t rows() const { return plane_.height; }

  int64_t width() const { return plane_.width; }

  template <class Treat>
  RONDO_AVX2 RONDO_INLINE void each_element(int64_t plane, int64_t y, Treat treat) const {
    const bool is_pooled = y / 2 < plane_.out_height();
    const int64_t in_windows = is_pooled ? plane_.out_width() * 2 : 0;
    const int64_t row = is_pooled ? y / 2 * plane_.out_width() : 0;
    const int64_t first = (plane * plane_.windows() + row) * kBlock;
    const auto first_route = static_cast<int32_t>(y % 2 * 2);
    const float* gradient = gradient_.as<float>() + first;
    const uint8_t* route = routes_.as<uint8_t>() + first;
    int64_t i = 0;
    for (; i < in_windows; i += 2, gradient += kBlock, route += kBlock) {
      for (int64_t b = 0; b < kBundles; ++b) {
        // A gradient of -0 becomes 0, as in a sum that begins with zero.
        const Lanes gradients = load(gradient + b * kLanes) + 0.0F;
        const LaneInts routes = load_routes(route + b * kLanes);
        treat(i, b, routes == first_route ? gradients : Lanes{});
        treat(i + 1, b, routes == first_route + 1 ? gradients : Lanes{});
      }
    }
    for (; i < plane_.width; ++i) {  // in no window
      for (int64_t b = 0; b < kBundles; ++b) {
        treat(i, b, Lanes{});
      }
    }
  }

 private:
  static constexpr int64_t kBlock = kBundles * kLanes;

  Operand gradient_;
  Operand routes_;
  PairedPlane plane_;
};

template <int64_t kBundles>
bool accepts(const StepProgram& program, const Instruction& instruction) {
  return is_batch_norm_relu_pool_backward(program, instruction) &&
         block_of(*slot_at(program, instruction.arguments, 2)) == kBundles * kLanes;
}

template <ProductSum kSum, int64_t kBundles>
std::unique_ptr<Kernel> make(const StepProgram& program,
                             const Instruction& instruction,
                             const Operands& memory) {
  using Source = PooledGradient<kBundles>;
  const Slot& x = *slot_at(program, instruction.arguments, 2);
  const BatchNormReluPoolGradients all = batch_norm_relu_pool_gradients(instruction, memory);
  return std::make_unique<BatchNormGradientBlocksKernel<Source, kSum, kBundles>>(
      all.norm, shape_of(image_sizes(x)), Source(all.gradient, all.routes, plane_of(x)));
}

template <ProductSum kSum, int64_t kBundles>
OwnKernel kernel() {
  return {"rondo::batch_norm_relu_pool_backward", accepts<kBundles>, make<kSum, kBundles>};
}

}  // namespace

std::vector<OwnKernel> batch_norm_relu_pool_backward_blocks_kernels() {
  return {kernel<ProductSum::Fused, 1>(),
          kernel<ProductSum::Fused, 2>(),
          kernel<ProductSum::Rounded, 1>(),
          kernel<ProductSum::Rounded, 2>()};
}

}  // namespace rondo
