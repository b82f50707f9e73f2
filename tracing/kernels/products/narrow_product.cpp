// Small products of bfloat16 by oneDNN, as LibTorch computes them on processors with AVX-512.
// Called past LibTorch, a primitive is looked up and bound to its shapes once instead of in each
// step, which takes some 25 us a call. That does not matter to large ones, for which LibTorch packs
// the second matrix beforehand.

#include <algorithm>
#include <cstring>
#include <optional>

#include "tracing/kernels/kernels.h"
#include "tracing/onednn/call_for_threads.h"
#include "tracing/onednn/product.h"
#include "tracing/program/arguments.h"

namespace rondo {

namespace {

constexpr int64_t kMostMultiplications = int64_t{1} << 26;

class NarrowProductKernel final : public Kernel {
 public:
  /// \param bias  repeated for each row below the product; absent: the product alone
  NarrowProductKernel(
      const ProductShape& shape, std::optional<Operand> bias, Operand a, Operand b, Operand y)
      : call_(call_for(shape, bias.has_value())),
        rows_(shape.rows),
        row_bytes_(static_cast<size_t>(shape.columns) * sizeof(uint16_t)),
        bias_(bias),
        a_(a),
        b_(b),
        y_(y) {}

  static CallForThreads::Prepare call_for(const ProductShape& shape, bool has_bias) {
    return [=] { return prepare_product(shape, /*adds=*/has_bias); };
  }

  void run() override {
    char* to = y_.as<char>();
    for (int64_t row = 0; bias_ && row < rows_; ++row, to += row_bytes_) {
      std::memcpy(to, bias_->as<char>(), row_bytes_);
    }
    call_.run({a_.as<void>(), b_.as<void>(), y_.as<void>()});
  }

  int64_t bytes() const override { return call_.bytes(); }

 private:
  CallForThreads call_;
  int64_t rows_;
  size_t row_bytes_;
  std::optional<Operand> bias_;
  Operand a_;
  Operand b_;
  Operand y_;
};

/// One of the last two dimensions lies side by side; LibTorch copies others first.
bool is_matrix(const Slot* slot, size_t rank) {
  if (slot == nullptr || slot->dtype != at::kBFloat16 || slot->sizes.size() != rank ||
      numel(*slot) == 0) {
    return false;
  }
  const int64_t rows = slot->sizes[rank - 2];
  const int64_t columns = slot->sizes[rank - 1];
  const int64_t down = slot->strides[rank - 2];
  const int64_t across = slot->strides[rank - 1];
  return (across == 1 && down >= columns) || (down == 1 && across >= rows);
}

ProductShape::Steps steps_of(const Slot& slot) {
  const size_t rank = slot.sizes.size();
  return {rank == 3 ? slot.strides[0] : 0, slot.strides[rank - 2], slot.strides[rank - 1]};
}

/// \param a  which argument is the first matrix
std::optional<ProductShape> shape_of(const StepProgram& program,
                                     const Instruction& instruction,
                                     size_t a,
                                     size_t rank) {
  const Slot* const left = slot_at(program, instruction.arguments, a);
  const Slot* const right = slot_at(program, instruction.arguments, a + 1);
  const Slot* const result = slot_at(program, instruction.results, 0);
  if (!is_matrix(left, rank) || !is_matrix(right, rank) || !is_matrix(result, rank) ||
      !is_contiguous(*result)) {
    return std::nullopt;
  }
  const auto size = [=](const Slot* slot, size_t from_last) {
    return slot->sizes[rank - from_last];
  };
  const int64_t batch = rank == 3 ? left->sizes[0] : 0;
  const ProductShape shape = {batch,
                              size(left, 2),
                              size(right, 1),
                              size(left, 1),
                              steps_of(*left),
                              steps_of(*right),
                              steps_of(*result)};
  const int64_t most = kMostMultiplications / std::max<int64_t>(batch, 1);
  const bool is_small = shape.rows <= most / shape.columns / shape.inner;
  const bool fits = is_small && size(right, 2) == shape.inner && size(result, 2) == shape.rows &&
                    size(result, 1) == shape.columns &&
                    (rank == 2 || (right->sizes[0] == batch && result->sizes[0] == batch));
  return fits ? std::optional(shape) : std::nullopt;
}

// (a, b)
template <size_t kRank>
bool accepts_product(const StepProgram& program, const Instruction& instruction) {
  const auto shape = has_onednn() ? shape_of(program, instruction, 0, kRank) : std::nullopt;
  return shape && can_prepare(NarrowProductKernel::call_for(*shape, /*has_bias=*/false));
}

template <size_t kRank>
std::unique_ptr<Kernel> make_product(const StepProgram& program,
                                     const Instruction& instruction,
                                     const Operands& memory) {
  return std::make_unique<NarrowProductKernel>(*shape_of(program, instruction, 0, kRank),
                                               std::nullopt,
                                               memory.operand(id_at(instruction.arguments, 0)),
                                               memory.operand(id_at(instruction.arguments, 1)),
                                               memory.operand(id_at(instruction.results, 0)));
}

// (bias, a, b, beta, alpha)
bool accepts_linear(const StepProgram& program, const Instruction& instruction) {
  const Slot* const bias = slot_at(program, instruction.arguments, 0);
  const auto shape = has_onednn() ? shape_of(program, instruction, 1, 2) : std::nullopt;
  return shape && bias != nullptr && bias->dtype == at::kBFloat16 && bias->sizes.size() == 1 &&
         bias->sizes[0] == shape->columns && is_contiguous(*bias) &&
         is_constant(instruction.arguments[3], 1.0) && is_constant(instruction.arguments[4], 1.0) &&
         can_prepare(NarrowProductKernel::call_for(*shape, /*has_bias=*/true));
}

std::unique_ptr<Kernel> make_linear(const StepProgram& program,
                                    const Instruction& instruction,
                                    const Operands& memory) {
  return std::make_unique<NarrowProductKernel>(*shape_of(program, instruction, 1, 2),
                                               memory.operand(id_at(instruction.arguments, 0)),
                                               memory.operand(id_at(instruction.arguments, 1)),
                                               memory.operand(id_at(instruction.arguments, 2)),
                                               memory.operand(id_at(instruction.results, 0)));
}

}  // namespace

std::vector<OwnKernel> narrow_product_kernels() {
  return {{"aten::mm", accepts_product<2>, make_product<2>},
          {"aten::bmm", accepts_product<3>, make_product<3>},
          {"aten::addmm", accepts_linear, make_linear}};
}

}  // namespace rondo
