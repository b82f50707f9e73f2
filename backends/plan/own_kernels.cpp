#include "backends/plan/own_kernels.h"

#include "backends/plan/kernels/kernels.h"

namespace rondo {

const std::vector<OwnKernel>& own_kernels() {
  static const std::vector<OwnKernel> all = [] {
    std::vector<OwnKernel> kernels;
    for (const auto& family : {matrix_product_kernels(),
                               elementwise_kernels(),
                               column_sum_kernels(),
                               softmax_kernels(),
                               nll_loss_kernels()}) {
      kernels.insert(kernels.end(), family.begin(), family.end());
    }
    return kernels;
  }();
  return all;
}

const OwnKernel* find_own_kernel(const StepProgram& program, const Instruction& instruction) {
  for (const OwnKernel& own : own_kernels()) {
    if (operator_name(instruction.op) == own.op && own.accepts(program, instruction)) {
      return &own;
    }
  }
  return nullptr;
}

}  // namespace rondo
