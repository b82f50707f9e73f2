// Compiled with -ffp-contract=off (tracing/CMakeLists.txt): what LibTorch's AVX2 build fuses is
// written as `fma`. See core/vector_loop.h.

#include "tracing/kernels/norms/batch_norm.h"
#include "core/parallel.h"
#include "core/vector_loop.h"
#include "tracing/kernels/kernels.h"
#include "tracing/program/arguments.h"

namespace rondo {

namespace {

/// In training: normalises with the statistics of the batch and moves the running ones.
template <void (*kCollect)(const BatchStatistics&)>
class BatchNormKernel final : public Kernel {
 public:
  BatchNormKernel(const BatchNormOperands& norm, Operand y) : norm_(norm), y_(y) {}

  void run() override {
    kCollect(norm_.statistics());
    parallel_for_each(
        norm_.shape.planes(), norm_.shape.image, [this](int64_t plane) { normalise(plane); });
  }

 private:
  void normalise(int64_t plane) const {
    const auto [scale, shift] = norm_.normalisation(plane % norm_.shape.channels);
    const int64_t image = norm_.shape.image;
    const float* const in = norm_.x.as<float>() + plane * image;
    float* const out = y_.as<float>() + plane * image;
    vector_loop([in, out, scale = scale, shift = shift](int64_t i)
                    RONDO_INLINE_LAMBDA { out[i] = __builtin_fmaf(in[i], scale, shift); },
                image);
  }

  BatchNormOperands norm_;
  Operand y_;
};

bool accepts(const StepProgram& program, const Instruction& instruction) {
  return is_batch_norm(program, instruction, &plain_channels);
}

bool accepts_in_lanes(const StepProgram& program, const Instruction& instruction) {
  return widest_instruction_set() == InstructionSet::Avx2 && accepts(program, instruction);
}

template <class AnyKernel>
std::unique_ptr<Kernel> make(const StepProgram& program,
                             const Instruction& instruction,
                             const Operands& memory) {
  const ImageShape shape = image_shape(*slot_at(program, instruction.arguments, 0));
  return std::make_unique<AnyKernel>(batch_norm_operands(shape, instruction, memory),
                                     memory.operand(id_at(instruction.results, 0)));
}

}  // namespace

bool is_batch_norm(const StepProgram& program,
                   const Instruction& instruction,
                   int64_t (*channels)(const Slot& input)) {
  if (!are_plain_floats(program, instruction.arguments, {0}) ||
      !are_plain_floats(program, instruction.results, {0}) ||
      !is_constant(instruction.arguments[5], 1.0)) {
    return false;
  }
  const Slot& x = *slot_at(program, instruction.arguments, 0);
  return x.sizes.size() >= 3 && numel(x) > 0 &&
         slot_at(program, instruction.results, 0)->sizes == x.sizes &&
         have_floats(program, instruction.arguments, {1, 2, 3, 4}, channels(x)) &&
         have_floats(program, instruction.results, {1, 2}, channels(x));
}

BatchNormOperands batch_norm_operands(const ImageShape& shape,
                                      const Instruction& instruction,
                                      const Operands& memory) {
  const auto argument = [&](size_t i) { return memory.operand(id_at(instruction.arguments, i)); };
  const auto result = [&](size_t i) { return memory.operand(id_at(instruction.results, i)); };
  return {shape,
          static_cast<float>(instruction.arguments[6].constant.toDouble()),
          instruction.arguments[7].constant.toDouble(),
          argument(0),
          argument(1),
          argument(2),
          argument(3),
          argument(4),
          result(1),
          result(2)};
}

std::vector<OwnKernel> batch_norm_kernels() {
  constexpr int kUlps = 64;
  const char* const op = "aten::native_batch_norm";
  return {{op, accepts_in_lanes, make<BatchNormKernel<collect_in_lanes>>, kUlps},
          {op, accepts, make<BatchNormKernel<collect>>}};
}

}  // namespace rondo
