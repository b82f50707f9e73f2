// Compiled with -ffp-contract=off (tracing/CMakeLists.txt), see core/vector_loop.h.

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "core/vector_loop.h"
#include "tracing/kernels/kernels.h"
#include "tracing/program/arguments.h"

namespace rondo {

namespace {

// LibTorch's `sum` adds the rows of a matrix in four levels, so that rounding errors grow slowly;
// 32 columns (four vectors of AVX2) side by side, those behind the last 32 in four interleaved
// strands of rows.
// Source: multi_row_sum and row_sum, ATen/native/cpu/SumKernel.cpp.
constexpr int64_t kLevels = 4;
constexpr int64_t kLanes = 8;
constexpr int64_t kBlock = 4 * kLanes;
constexpr int64_t kStrands = 4;

struct Matrix {
  const float* data;
  int64_t rows;
  int64_t columns;
};

/// log2 of the rows that a level takes before it goes up.
int64_t level_power(int64_t rows) {
  int64_t log2 = 0;
  while ((int64_t{1} << log2) < rows) {
    ++log2;
  }
  return std::max<int64_t>(4, log2 / kLevels);
}

/// Sums rows that lie `stride` apart, of kWidth columns side by side.
template <int64_t kWidth>
struct Cascade {
  int64_t rows;
  int64_t stride;
  int64_t power;

  RONDO_INLINE void operator()(const float* data, float* sums) const {
    const int64_t step = int64_t{1} << power;
    float level[kLevels][kWidth] = {};
    int64_t i = 0;
    while (i + step <= rows) {
      for (int64_t j = 0; j < step; ++j, ++i) {
        for (int64_t k = 0; k < kWidth; ++k) {
          level[0][k] += data[i * stride + k];
        }
      }
      for (int64_t j = 1; j < kLevels; ++j) {
        for (int64_t k = 0; k < kWidth; ++k) {
          level[j][k] += level[j - 1][k];
          level[j - 1][k] = 0.0F;
        }
        if ((i & ((step - 1) << (j * power))) != 0) {
          break;
        }
      }
    }
    for (; i < rows; ++i) {
      for (int64_t k = 0; k < kWidth; ++k) {
        level[0][k] += data[i * stride + k];
      }
    }
    for (int64_t k = 0; k < kWidth; ++k) {
      sums[k] = ((level[0][k] + level[1][k]) + level[2][k]) + level[3][k];
    }
  }
};

/// One column in four strands.
RONDO_INLINE float strand_sum(const Matrix& matrix, int64_t column, int64_t power) {
  const int64_t turns = matrix.rows / kStrands;
  float strands[kStrands];
  for (int64_t s = 0; s < kStrands; ++s) {
    const Cascade<1> cascade{turns, kStrands * matrix.columns, power};
    cascade(matrix.data + s * matrix.columns + column, &strands[s]);
  }
  for (int64_t i = turns * kStrands; i < matrix.rows; ++i) {
    strands[0] += matrix.data[i * matrix.columns + column];
  }
  return ((strands[0] + strands[1]) + strands[2]) + strands[3];
}

class ColumnSumKernel final : public Kernel {
 public:
  /// \param shape  of the input
  ColumnSumKernel(Operand input, Operand result, const Matrix& shape)
      : input_(input),
        result_(result),
        rows_(shape.rows),
        columns_(shape.columns),
        power_(level_power(shape.rows)),
        strand_power_(level_power(shape.rows / kStrands)) {}

  void run() override {
    const Matrix matrix = {input_.as<float>(), rows_, columns_};
    float* const sums = result_.as<float>();
    const Cascade<kBlock> cascade{rows_, columns_, power_};
    vector_loop(
        [=](int64_t block)
            RONDO_INLINE_LAMBDA { cascade(matrix.data + block * kBlock, sums + block * kBlock); },
        columns_ / kBlock);
    for (int64_t column = columns_ / kBlock * kBlock; column < columns_; ++column) {
      sums[column] = strand_sum(matrix, column, strand_power_);
    }
  }

 private:
  Operand input_;
  Operand result_;
  int64_t rows_;
  int64_t columns_;
  int64_t power_;
  int64_t strand_power_;
};

/// The tensor that is summed over its first dimensions, as a matrix; none of its data yet.
std::optional<Matrix> summed(const StepProgram& program, const Instruction& instruction) {
  const Slot* const input = slot_at(program, instruction.arguments, 0);
  const Argument& list = instruction.arguments[1];
  if (!is_plain_float(input) || list.kind != Argument::Kind::Constant ||
      !list.constant.isIntList()) {
    return std::nullopt;
  }
  const std::vector<int64_t> dims = list.constant.toIntVector();
  std::vector<int64_t> first(dims.size());
  std::iota(first.begin(), first.end(), 0);
  if (dims.empty() || dims != first || dims.size() >= input->sizes.size()) {
    return std::nullopt;
  }
  Matrix matrix = {nullptr, 1, 1};
  for (size_t d = 0; d < input->sizes.size(); ++d) {
    (d < dims.size() ? matrix.rows : matrix.columns) *= input->sizes[d];
  }
  return matrix;
}

bool accepts(const StepProgram& program, const Instruction& instruction) {
  const std::optional<Matrix> matrix = summed(program, instruction);
  // Fewer columns than a vector has lanes are summed in yet another order.
  return matrix && matrix->columns >= kLanes &&
         have_floats(program, instruction.results, {0}, matrix->columns) &&
         is_none(instruction.arguments[3]);
}

std::unique_ptr<Kernel> make(const StepProgram& program,
                             const Instruction& instruction,
                             const Operands& memory) {
  return std::make_unique<ColumnSumKernel>(memory.operand(id_at(instruction.arguments, 0)),
                                           memory.operand(id_at(instruction.results, 0)),
                                           *summed(program, instruction));
}

}  // namespace

std::vector<OwnKernel> column_sum_kernels() {
  return {{"aten::sum.dim_IntList", accepts, make}};
}

}  // namespace rondo
