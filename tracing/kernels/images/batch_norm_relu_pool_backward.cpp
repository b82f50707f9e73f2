// Compiled with -ffp-contract=off (tracing/CMakeLists.txt), see core/vector_loop.h.

#include "core/parallel.h"
#include "tracing/kernels/images/batch_norm_relu_pool.h"
#include "tracing/kernels/kernels.h"
#include "tracing/kernels/norms/batch_norm_gradient.h"
#include "tracing/program/arguments.h"

namespace rondo {

namespace {

/// The gradient of a plane is spread where the norm's will be, right before it is added up.
template <ProductSum kSum>
class BatchNormReluPoolBackwardKernel final : public Kernel {
 public:
  BatchNormReluPoolBackwardKernel(const BatchNormReluPoolGradients& tensors,
                                  const ImageShape& shape,
                                  PairedPlane plane)
      : t_(tensors), shape_(shape), plane_(plane) {}

  void run() override {
    const BatchNormGradient gradient = t_.norm.with(shape_, /*dy=*/t_.norm.dx.as<float>());
    parallel_for_each(shape_.channels, shape_.per_channel(), [&](int64_t channel) {
      compute_channel<kSum>(gradient, channel, [this](int64_t plane) { spread_plane(plane); });
    });
  }

 private:
  void spread_plane(int64_t plane) const {
    spread(plane_,
           t_.gradient.as<float>() + plane * plane_.windows(),
           t_.routes.as<uint8_t>() + plane * plane_.windows(),
           t_.norm.dx.as<float>() + plane * plane_.size());
  }

  BatchNormReluPoolGradients t_;
  ImageShape shape_;
  PairedPlane plane_;
};

bool accepts(const StepProgram& program, const Instruction& instruction) {
  return is_batch_norm_relu_pool_backward(program, instruction) &&
         block_of(*slot_at(program, instruction.arguments, 2)) == 0;
}

template <ProductSum kSum>
std::unique_ptr<Kernel> make(const StepProgram& program,
                             const Instruction& instruction,
                             const Operands& memory) {
  const Slot& x = *slot_at(program, instruction.arguments, 2);
  return std::make_unique<BatchNormReluPoolBackwardKernel<kSum>>(
      batch_norm_relu_pool_gradients(instruction, memory), image_shape(x), plane_of(x));
}

}  // namespace

bool is_batch_norm_relu_pool_backward(const StepProgram& program, const Instruction& instruction) {
  const Slot* const x = slot_at(program, instruction.arguments, 2);
  if (widest_instruction_set() != InstructionSet::Avx2 ||
      !fit_together(x,
                    slot_at(program, instruction.arguments, 0),
                    slot_at(program, instruction.arguments, 1)) ||
      !are_plain_floats(program, instruction.results, {0})) {
    return false;
  }
  const int64_t channels = image_sizes(*x).channels;
  return have_floats(program, instruction.arguments, {3, 4, 5}, channels) &&
         have_floats(program, instruction.results, {1, 2}, channels) &&
         slot_at(program, instruction.results, 0)->sizes == x->sizes;
}

BatchNormReluPoolGradients batch_norm_relu_pool_gradients(const Instruction& instruction,
                                                          const Operands& memory) {
  const auto argument = [&](size_t i) { return memory.operand(id_at(instruction.arguments, i)); };
  const auto result = [&](size_t i) { return memory.operand(id_at(instruction.results, i)); };
  return {argument(0),
          argument(1),
          {argument(2), argument(3), argument(4), argument(5), result(0), result(1), result(2)}};
}

std::vector<OwnKernel> batch_norm_relu_pool_backward_kernels() {
  const char* const op = "rondo::batch_norm_relu_pool_backward";
  return {{op, accepts, make<ProductSum::Fused>}, {op, accepts, make<ProductSum::Rounded>}};
}

}  // namespace rondo
