#include "tracing/kernels/products/product_shape.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "tracing/program/arguments.h"

namespace rondo {

namespace {

// How a matrix lies in memory, as BLAS wants to know it.
struct Matrix {
  int64_t rows;
  int64_t columns;
  int64_t row_stride;
  int64_t column_stride;

  explicit Matrix(const Slot& slot)
      : rows(slot.sizes[0]),
        columns(slot.sizes[1]),
        row_stride(slot.strides[0]),
        column_stride(slot.strides[1]) {}

  Matrix transposed() const {
    Matrix t = *this;
    std::swap(t.rows, t.columns);
    std::swap(t.row_stride, t.column_stride);
    return t;
  }
};

// One argument of a product: the distance of its columns, or of its rows where it is transposed.
struct Operand2d {
  bool is_transposed;
  int leading;
};

std::optional<Operand2d> as_blas(const Matrix& matrix) {
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  const bool fits = matrix.rows <= kMost && matrix.columns <= kMost && matrix.row_stride <= kMost &&
                    matrix.column_stride <= kMost;
  if (fits && matrix.row_stride == 1 && matrix.column_stride >= std::max<int64_t>(1, matrix.rows)) {
    return Operand2d{false, static_cast<int>(matrix.column_stride)};
  }
  if (fits && matrix.column_stride == 1 &&
      matrix.row_stride >= std::max<int64_t>(1, matrix.columns)) {
    return Operand2d{true, static_cast<int>(matrix.row_stride)};
  }
  return std::nullopt;
}

bool is_matrix(const Slot* slot) {
  return slot != nullptr && slot->dtype == at::kFloat && slot->sizes.size() == 2;
}

}  // namespace

std::optional<GemmShape> product_of(const Slot* result, const Slot* a, const Slot* b) {
  if (!is_matrix(result) || !is_matrix(a) || !is_matrix(b) || !is_contiguous(*result)) {
    return std::nullopt;
  }
  const bool fits = a->sizes[1] == b->sizes[0] && result->sizes[0] == a->sizes[0] &&
                    result->sizes[1] == b->sizes[1];
  if (!fits) {  // only a file can say so
    return std::nullopt;
  }
  const Matrix left = Matrix(*b).transposed();
  const Matrix right = Matrix(*a).transposed();
  const bool is_degenerate = left.rows < 2 || right.columns < 2 || left.columns < 2;
  const auto first = as_blas(left);
  const auto second = as_blas(right);
  if (is_degenerate || !first || !second) {
    return std::nullopt;
  }
  GemmShape shape;
  shape.transpose_a = first->is_transposed;
  shape.transpose_b = second->is_transposed;
  shape.m = static_cast<int>(left.rows);
  shape.n = static_cast<int>(right.columns);
  shape.k = static_cast<int>(left.columns);
  shape.lda = first->leading;
  shape.ldb = second->leading;
  shape.ldc = shape.m;
  return shape;
}

std::optional<GemmShape> product_added_to(const StepProgram& program,
                                          const Instruction& instruction) {
  return product_of(slot_at(program, instruction.arguments, 0),
                    slot_at(program, instruction.arguments, 1),
                    slot_at(program, instruction.arguments, 2));
}

}  // namespace rondo
