#include <algorithm>

#include "tracing/kernels/kernels.h"
#include "tracing/kernels/losses/labels.h"
#include "tracing/program/arguments.h"

namespace rondo {

namespace {

constexpr int64_t kMean = 1;  // at::Reduction::Mean

/// Mean of -x[row][label], without weights.
/// Source: nll_loss_out_frame, ATen/native/LossNLL.cpp, which sums in levels.
class ForwardKernel final : public Kernel {
 public:
  ForwardKernel(Operand input, Operand labels, Operand loss, Operand weight, Labels shape)
      : input_(input), labels_(labels), loss_(loss), weight_(weight), shape_(shape) {
    int64_t log2 = 0;
    while ((int64_t{1} << log2) < shape_.count) {
      ++log2;
    }
    power_ = std::max<int64_t>(4, log2 / kLevels);
  }

  void run() override {
    Labels labels = shape_;
    labels.data = labels_.as<int64_t>();
    const float* const x = input_.as<float>();
    const int64_t mask = (int64_t{1} << power_) - 1;
    float sums[kLevels] = {};
    int64_t ignored = 0;
    for (int64_t row = 0; row < labels.count; ++row) {
      const int64_t label = labels[row];
      if (label < 0) {
        ++ignored;
        continue;
      }
      sums[0] -= x[row * labels.classes + label];
      for (int64_t j = 0; j + 1 < kLevels && (row & (mask << (j * power_))) == 0; ++j) {
        sums[j + 1] += sums[j];
        sums[j] = 0.0F;
      }
    }
    float total = 0.0F;
    for (const float sum : sums) {
      total += sum;
    }
    const auto weight = static_cast<float>(labels.count - ignored);
    *weight_.as<float>() = weight;
    *loss_.as<float>() = total / weight;
  }

 private:
  static constexpr int64_t kLevels = 8;

  Operand input_;
  Operand labels_;
  Operand loss_;
  Operand weight_;
  Labels shape_;
  int64_t power_;
};

class BackwardKernel final : public Kernel {
 public:
  BackwardKernel(Operand grad, Operand labels, Operand weight, Operand result, Labels shape)
      : grad_(grad), labels_(labels), weight_(weight), result_(result), shape_(shape) {}

  void run() override {
    Labels labels = shape_;
    labels.data = labels_.as<int64_t>();
    labels.write_at_class(-(*grad_.as<float>() / *weight_.as<float>()), result_.as<float>());
  }

 private:
  Operand grad_;
  Operand labels_;
  Operand weight_;
  Operand result_;
  Labels shape_;
};

// x, labels, no class weights, mean: `first` is the position of x.
bool accepts(const StepProgram& program, const Instruction& instruction, size_t first) {
  const std::vector<Argument>& arguments = instruction.arguments;
  const Slot* const x = slot_at(program, arguments, first);
  const Slot* const labels = slot_at(program, arguments, first + 1);
  return is_plain_float(x) && x->sizes.size() == 2 && labels != nullptr &&
         labels->dtype == at::kLong && is_contiguous(*labels) && labels->sizes.size() == 1 &&
         is_none(arguments[first + 2]) && is_constant(arguments[first + 3], kMean);
}

Labels shape_of(const StepProgram& program, const Instruction& instruction, size_t first) {
  const Slot& x = *slot_at(program, instruction.arguments, first);
  return {nullptr, x.sizes[0], x.sizes[1], instruction.arguments[first + 4].constant.toInt()};
}

bool accepts_forward(const StepProgram& program, const Instruction& instruction) {
  return accepts(program, instruction, 0) &&
         is_plain_float(slot_at(program, instruction.results, 0)) &&
         is_plain_float(slot_at(program, instruction.results, 1));
}

bool accepts_backward(const StepProgram& program, const Instruction& instruction) {
  return accepts(program, instruction, 1) &&
         is_plain_float(slot_at(program, instruction.arguments, 0)) &&
         is_plain_float(slot_at(program, instruction.arguments, 6)) &&
         is_plain_float(slot_at(program, instruction.results, 0));
}

std::unique_ptr<Kernel> make_forward(const StepProgram& program,
                                     const Instruction& instruction,
                                     const Operands& memory) {
  return std::make_unique<ForwardKernel>(memory.operand(id_at(instruction.arguments, 0)),
                                         memory.operand(id_at(instruction.arguments, 1)),
                                         memory.operand(id_at(instruction.results, 0)),
                                         memory.operand(id_at(instruction.results, 1)),
                                         shape_of(program, instruction, 0));
}

std::unique_ptr<Kernel> make_backward(const StepProgram& program,
                                      const Instruction& instruction,
                                      const Operands& memory) {
  return std::make_unique<BackwardKernel>(memory.operand(id_at(instruction.arguments, 0)),
                                          memory.operand(id_at(instruction.arguments, 2)),
                                          memory.operand(id_at(instruction.arguments, 6)),
                                          memory.operand(id_at(instruction.results, 0)),
                                          shape_of(program, instruction, 1));
}

}  // namespace

std::vector<OwnKernel> nll_loss_kernels() {
  return {{"aten::nll_loss_forward", accepts_forward, make_forward},
          {"aten::nll_loss_backward", accepts_backward, make_backward}};
}

}  // namespace rondo
