#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include "tracing/kernels/kernels.h"
#include "tracing/program/arguments.h"

namespace rondo {

namespace {

/// A tensor as blocks one after another, of which a part in the middle is known.
struct Parts {
  int64_t blocks = 1;
  int64_t before = 0;  ///< floats of a block, up to the part
  int64_t part = 0;    ///< floats that are known
  int64_t block = 1;   ///< floats of a block
};

/// The gradient of what a slice was cut from: zeros around the gradient of the slice.
class SliceBackwardKernel final : public Kernel {
 public:
  SliceBackwardKernel(Operand grad, Operand result, Parts parts)
      : grad_(grad), result_(result), parts_(parts) {}

  void run() override {
    const float* grad = grad_.as<float>();
    float* result = result_.as<float>();
    for (int64_t i = 0; i < parts_.blocks; ++i, grad += parts_.part, result += parts_.block) {
      float* const end = std::copy_n(grad, parts_.part, std::fill_n(result, parts_.before, 0.0F));
      std::fill(end, result + parts_.block, 0.0F);
    }
  }

 private:
  Operand grad_;
  Operand result_;
  Parts parts_;
};

int64_t product(std::vector<int64_t>::const_iterator begin,
                std::vector<int64_t>::const_iterator end) {
  return std::accumulate(begin, end, int64_t{1}, std::multiplies<int64_t>());
}

// (grad, sizes, dim, start, end, step), with start and end counted from the front.
bool accepts(const StepProgram& program, const Instruction& instruction) {
  const std::vector<Argument>& arguments = instruction.arguments;
  const Slot* const grad = slot_at(program, arguments, 0);
  const Slot* const result = slot_at(program, instruction.results, 0);
  const bool are_known = is_plain_float(grad) && is_plain_float(result) &&
                         is_integer(arguments[2]) && is_integer(arguments[3]) &&
                         is_constant(arguments[5], 1.0);
  if (!are_known || grad->sizes.size() != result->sizes.size()) {
    return false;
  }
  const int64_t dim = arguments[2].constant.toInt();
  const int64_t start = arguments[3].constant.toInt();
  if (dim < 0 || dim >= static_cast<int64_t>(grad->sizes.size())) {
    return false;
  }
  const auto d = static_cast<size_t>(dim);
  std::vector<int64_t> sizes = result->sizes;
  sizes[d] = grad->sizes[d];
  return sizes == grad->sizes && start >= 0 && start <= result->sizes[d] - grad->sizes[d];
}

std::unique_ptr<Kernel> make(const StepProgram& program,
                             const Instruction& instruction,
                             const Operands& memory) {
  const Slot& grad = *slot_at(program, instruction.arguments, 0);
  const Slot& result = *slot_at(program, instruction.results, 0);
  const int64_t dim = instruction.arguments[2].constant.toInt();
  const int64_t inner = product(result.sizes.begin() + dim + 1, result.sizes.end());
  Parts parts;
  parts.blocks = product(result.sizes.begin(), result.sizes.begin() + dim);
  parts.before = instruction.arguments[3].constant.toInt() * inner;
  parts.part = grad.sizes[static_cast<size_t>(dim)] * inner;
  parts.block = result.sizes[static_cast<size_t>(dim)] * inner;
  return std::make_unique<SliceBackwardKernel>(memory.operand(id_at(instruction.arguments, 0)),
                                               memory.operand(id_at(instruction.results, 0)),
                                               parts);
}

}  // namespace

std::vector<OwnKernel> slice_backward_kernels() {
  return {{"aten::slice_backward", accepts, make}};
}

}  // namespace rondo
