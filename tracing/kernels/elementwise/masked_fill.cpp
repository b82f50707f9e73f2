#include <algorithm>

#include "core/vector_loop.h"
#include "tracing/kernels/kernels.h"
#include "tracing/kernels/stored_numbers.h"
#include "tracing/program/arguments.h"

namespace rondo {

namespace {

/// The elements of a tensor, and a number where a mask is true. The mask covers the last dimensions
/// and repeats over the first ones, as in attention.
template <class Stored>
class MaskedFillKernel final : public Kernel {
 public:
  MaskedFillKernel(Operand x, Operand mask, Operand y, float value, int64_t repeats, int64_t period)
      : x_(x), mask_(mask), y_(y), value_(value), repeats_(repeats), period_(period) {}

  void run() override {
    const Stored* x = x_.as<Stored>();
    const uint8_t* const mask = mask_.as<uint8_t>();
    Stored* y = y_.as<Stored>();
    const float value = value_;
    for (int64_t r = 0; r < repeats_; ++r, x += period_, y += period_) {
      stored_loop<Stored>(
          [=](int64_t i) RONDO_INLINE_LAMBDA {
            // Both as 32-bit values, so that the loop becomes one over vectors.
            const float kept = number_in(x[i]);
            const int32_t is_masked = mask[i];
            store(is_masked != 0 ? value : kept, y[i]);
          },
          period_);
    }
  }

 private:
  Operand x_;
  Operand mask_;
  Operand y_;
  float value_;
  int64_t repeats_;
  int64_t period_;
};

bool is_trailing_part(const std::vector<int64_t>& part, const std::vector<int64_t>& whole) {
  return part.size() <= whole.size() && std::equal(part.rbegin(), part.rend(), whole.rbegin());
}

bool accepts(const StepProgram& program, const Instruction& instruction) {
  const Slot* const x = slot_at(program, instruction.arguments, 0);
  const Slot* const mask = slot_at(program, instruction.arguments, 1);
  const Slot* const y = slot_at(program, instruction.results, 0);
  const bool are_numbers = x != nullptr && y != nullptr && is_stored(x->dtype) &&
                           y->dtype == x->dtype && is_contiguous(*x) && is_contiguous(*y);
  return are_numbers && mask != nullptr && mask->dtype == at::kBool && is_contiguous(*mask) &&
         is_trailing_part(mask->sizes, x->sizes) && numel(*mask) > 0 &&
         instruction.arguments[2].kind == Argument::Kind::Constant;
}

std::unique_ptr<Kernel> make(const StepProgram& program,
                             const Instruction& instruction,
                             const Operands& memory) {
  const Slot& x = *slot_at(program, instruction.arguments, 0);
  const int64_t period = numel(*slot_at(program, instruction.arguments, 1));
  const auto value = static_cast<float>(instruction.arguments[2].constant.toScalar().toDouble());
  return with_stored(x.dtype, [&](auto stored) -> std::unique_ptr<Kernel> {
    return std::make_unique<MaskedFillKernel<decltype(stored)>>(
        memory.operand(id_at(instruction.arguments, 0)),
        memory.operand(id_at(instruction.arguments, 1)),
        memory.operand(id_at(instruction.results, 0)),
        value,
        numel(x) / period,
        period);
  });
}

}  // namespace

std::vector<OwnKernel> masked_fill_kernels() {
  return {{"aten::masked_fill.Scalar", accepts, make, /*ulps=*/0, /*in_place=*/true}};
}

}  // namespace rondo
