// Compiled with -ffp-contract=off (tracing/CMakeLists.txt): what LibTorch's AVX2 build fuses is
// written as `fma`. See core/vector_loop.h.

#include "core/parallel.h"
#include "tracing/kernels/kernels.h"
#include "tracing/kernels/norms/batch_norm.h"
#include "tracing/program/arguments.h"

namespace rondo {

namespace {

template <ProductSum kSum>
class BatchNormBackwardKernel final : public Kernel {
 public:
  BatchNormBackwardKernel(Operand dy,
                          const BatchNormGradientOperands& tensors,
                          const ImageShape& shape)
      : dy_(dy), t_(tensors), shape_(shape) {}

  void run() override {
    const BatchNormGradient gradient = t_.with(shape_, dy_.as<float>());
    parallel_for_each(shape_.channels, shape_.per_channel(), [&](int64_t channel) {
      compute_channel<kSum>(gradient, channel, [](int64_t) {});
    });
  }

 private:
  Operand dy_;
  BatchNormGradientOperands t_;
  ImageShape shape_;
};

bool accepts(const StepProgram& program, const Instruction& instruction) {
  return is_batch_norm_backward(program, instruction, &plain_channels) &&
         image_shape(*slot_at(program, instruction.arguments, 1)).image >= kLanes;
}

template <ProductSum kSum>
std::unique_ptr<Kernel> make(const StepProgram& program,
                             const Instruction& instruction,
                             const Operands& memory) {
  return std::make_unique<BatchNormBackwardKernel<kSum>>(
      memory.operand(id_at(instruction.arguments, 0)),
      batch_norm_gradient_operands(instruction, memory),
      image_shape(*slot_at(program, instruction.arguments, 1)));
}

}  // namespace

bool is_batch_norm_backward(const StepProgram& program,
                            const Instruction& instruction,
                            int64_t (*channels)(const Slot& input)) {
  if (widest_instruction_set() != InstructionSet::Avx2 ||
      !is_constant(instruction.arguments[7], 1.0) ||
      !are_plain_floats(program, instruction.arguments, {0, 1}) ||
      !are_plain_floats(program, instruction.results, {0})) {
    return false;
  }
  const Slot& x = *slot_at(program, instruction.arguments, 1);
  return x.sizes.size() >= 3 && numel(x) > 0 &&
         slot_at(program, instruction.arguments, 0)->sizes == x.sizes &&
         slot_at(program, instruction.results, 0)->sizes == x.sizes &&
         have_floats(program, instruction.arguments, {2, 5, 6}, channels(x)) &&
         have_floats(program, instruction.results, {1, 2}, channels(x));
}

BatchNormGradientOperands batch_norm_gradient_operands(const Instruction& instruction,
                                                       const Operands& memory) {
  const auto argument = [&](size_t i) { return memory.operand(id_at(instruction.arguments, i)); };
  const auto result = [&](size_t i) { return memory.operand(id_at(instruction.results, i)); };
  return {argument(1), argument(2), argument(5), argument(6), result(0), result(1), result(2)};
}

std::vector<OwnKernel> batch_norm_backward_kernels() {
  const char* const op = "aten::native_batch_norm_backward";
  return {{op, accepts, make<ProductSum::Fused>}, {op, accepts, make<ProductSum::Rounded>}};
}

}  // namespace rondo
