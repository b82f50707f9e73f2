// Compiled with -ffp-contract=off (backends/CMakeLists.txt): what LibTorch's AVX2 build fuses is
// written as `fma`. See core/vector_loop.h.

#include <ATen/Parallel.h>

#include "backends/plan/kernels/arguments.h"
#include "backends/plan/kernels/batch_statistics.h"
#include "backends/plan/kernels/kernels.h"
#include "core/vector_loop.h"

namespace rondo {

namespace {

/// Arguments and results.
struct Tensors {
  Operand x;
  Operand weight;
  Operand bias;
  Operand running_mean;
  Operand running_var;
  Operand y;
  Operand mean;
  Operand inverse_deviation;
};

/// In training: normalises with the statistics of the batch and moves the running ones.
template <void (*kCollect)(const BatchStatistics&)>
class BatchNormKernel final : public Kernel {
 public:
  BatchNormKernel(const Tensors& tensors, const ImageShape& shape, float momentum, double eps)
      : t_(tensors), shape_(shape), momentum_(momentum), eps_(eps) {}

  void run() override {
    kCollect({t_.x.as<float>(),
              shape_,
              momentum_,
              eps_,
              t_.running_mean.as<float>(),
              t_.running_var.as<float>(),
              t_.mean.as<float>(),
              t_.inverse_deviation.as<float>()});
    at::parallel_for(0, shape_.planes(), 1, [this](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) {
        normalise(plane);
      }
    });
  }

 private:
  void normalise(int64_t plane) const {
    const int64_t channel = plane % shape_.channels;
    const auto [scale, shift] = normalisation_of(t_.mean.as<float>()[channel],
                                                 t_.inverse_deviation.as<float>()[channel],
                                                 t_.weight.as<float>()[channel],
                                                 t_.bias.as<float>()[channel]);
    const float* const in = t_.x.as<float>() + plane * shape_.image;
    float* const out = t_.y.as<float>() + plane * shape_.image;
    vector_loop([in, out, scale = scale, shift = shift](int64_t i)
                    RONDO_INLINE_LAMBDA { out[i] = __builtin_fmaf(in[i], scale, shift); },
                shape_.image);
  }

  Tensors t_;
  ImageShape shape_;
  float momentum_;
  double eps_;
};

bool is_true(const Argument& argument) {
  return is_constant(argument, 1.0);
}

// (input, weight, bias, running_mean, running_var, training, momentum, eps)
bool accepts(const StepProgram& program, const Instruction& instruction) {
  return are_plain_floats(program, instruction.arguments, {0, 1, 2, 3, 4}) &&
         are_plain_floats(program, instruction.results, {0, 1, 2}) &&
         is_true(instruction.arguments[5]) &&
         slot_at(program, instruction.arguments, 0)->sizes.size() >= 3 &&
         numel(*slot_at(program, instruction.arguments, 0)) > 0;
}

bool accepts_in_lanes(const StepProgram& program, const Instruction& instruction) {
  return widest_instruction_set() == InstructionSet::Avx2 && accepts(program, instruction);
}

template <class AnyKernel>
std::unique_ptr<Kernel> make(const StepProgram& program,
                             const Instruction& instruction,
                             const PlanMemory& memory) {
  const auto argument = [&](size_t i) { return memory.operand(id_at(instruction.arguments, i)); };
  const auto result = [&](size_t i) { return memory.operand(id_at(instruction.results, i)); };
  return std::make_unique<AnyKernel>(
      Tensors{argument(0),
              argument(1),
              argument(2),
              argument(3),
              argument(4),
              result(0),
              result(1),
              result(2)},
      image_shape(*slot_at(program, instruction.arguments, 0)),
      static_cast<float>(instruction.arguments[6].constant.toDouble()),
      instruction.arguments[7].constant.toDouble());
}

}  // namespace

std::vector<OwnKernel> batch_norm_kernels() {
  constexpr int kUlps = 64;
  return {
      {"aten::native_batch_norm", accepts_in_lanes, make<BatchNormKernel<collect_in_lanes>>, kUlps},
      {"aten::native_batch_norm", accepts, make<BatchNormKernel<collect>>}};
}

}  // namespace rondo
