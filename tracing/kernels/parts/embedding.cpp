// Rows of a table by their numbers, and the gradient of the table.

#include <c10/util/Exception.h>

#include <algorithm>
#include <optional>

#include "core/parallel.h"
#include "core/vector_loop.h"
#include "tracing/kernels/kernels.h"
#include "tracing/program/arguments.h"

namespace rondo {

namespace {

struct Table {
  int64_t rows;
  int64_t width;  ///< floats of a row
};

class LookUpKernel final : public Kernel {
 public:
  LookUpKernel(Operand table, Operand numbers, Operand result, Table shape, int64_t count)
      : table_(table), numbers_(numbers), result_(result), shape_(shape), count_(count) {}

  void run() override {
    const float* const table = table_.as<float>();
    const int64_t* const numbers = numbers_.as<int64_t>();
    float* const result = result_.as<float>();
    parallel_for_each(count_, shape_.width, [&](int64_t i) {
      TORCH_CHECK_INDEX(numbers[i] >= 0 && numbers[i] < shape_.rows,
                        "index ",
                        numbers[i],
                        " at position ",
                        i,
                        " is out of range: the embedding has ",
                        shape_.rows,
                        " rows");
      std::copy_n(table + numbers[i] * shape_.width, shape_.width, result + i * shape_.width);
    });
  }

 private:
  Operand table_;
  Operand numbers_;
  Operand result_;
  Table shape_;
  int64_t count_;
};

/// Where the gradients of rows that were looked up lie: line after line of them, in the order of
/// their numbers.
struct Lines {
  int64_t length;  ///< rows of a line
  int64_t line;    ///< floats from one to the next
  int64_t row;

  int64_t offset(int64_t i) const { return i / length * line + i % length * row; }
};

/// Adds up, for each row of the table, the gradients of where it was looked up, in their order.
/// Source: embedding_dense_backward_cpu, ATen/native/Embedding.cpp.
class GradientKernel final : public Kernel {
 public:
  GradientKernel(Operand grad,
                 Operand numbers,
                 Operand result,
                 Lines lines,
                 Table shape,
                 int64_t count,
                 int64_t padding)
      : grad_(grad),
        numbers_(numbers),
        result_(result),
        lines_(lines),
        shape_(shape),
        count_(count),
        padding_(padding) {}

  void run() override {
    parallel_for(shape_.rows, grain_of(shape_.width), [&](int64_t begin, int64_t end) {
      add_up(begin, end);
    });
  }

 private:
  void add_up(int64_t begin, int64_t end) const {
    const int64_t width = shape_.width;
    const int64_t* const numbers = numbers_.as<int64_t>();
    float* const result = result_.as<float>();
    std::fill_n(result + begin * width, (end - begin) * width, 0.0F);
    for (int64_t i = 0; i < count_; ++i) {
      if (numbers[i] >= begin && numbers[i] < end && numbers[i] != padding_) {
        const float* const grad = grad_.as<float>() + lines_.offset(i);
        float* const sums = result + numbers[i] * width;
        vector_loop([=](int64_t j) RONDO_INLINE_LAMBDA { sums[j] += grad[j]; }, width);
      }
    }
  }

  Operand grad_;
  Operand numbers_;
  Operand result_;
  Lines lines_;
  Table shape_;
  int64_t count_;
  int64_t padding_;  ///< a row without gradient; -1: none
};

bool are_table_and_numbers(const Slot* table, const Slot* numbers) {
  return is_plain_float(table) && table->sizes.size() == 2 && numbers != nullptr &&
         numbers->dtype == at::kLong && is_contiguous(*numbers);
}

/// How a gradient lies that has a row of the table for each number: without gaps, or a matrix of
/// numbers whose rows lie in another order, as a module of sequences hands it back. None:
/// otherwise.
std::optional<Lines> lines_of(const Slot* grad, const Slot& numbers, int64_t width) {
  if (is_plain_float(grad) && numel(*grad) == numel(numbers) * width) {
    return Lines{std::max<int64_t>(numel(numbers), 1), 0, width};
  }
  const bool is_matrix_of_rows = grad != nullptr && grad->dtype == at::kFloat &&
                                 numbers.sizes.size() == 2 && grad->sizes.size() == 3 &&
                                 grad->sizes[0] == numbers.sizes[0] &&
                                 grad->sizes[1] == numbers.sizes[1] && grad->sizes[2] == width &&
                                 grad->strides[2] == 1 && numel(*grad) > 0;
  return is_matrix_of_rows
             ? std::optional(Lines{grad->sizes[1], grad->strides[0], grad->strides[1]})
             : std::nullopt;
}

// (table, numbers, padding, scale by frequency, sparse)
bool accepts_look_up(const StepProgram& program, const Instruction& instruction) {
  const Slot* const table = slot_at(program, instruction.arguments, 0);
  const Slot* const numbers = slot_at(program, instruction.arguments, 1);
  const Slot* const rows = slot_at(program, instruction.results, 0);
  return are_table_and_numbers(table, numbers) && is_plain_float(rows) &&
         numel(*rows) == numel(*numbers) * table->sizes[1];
}

std::unique_ptr<Kernel> make_look_up(const StepProgram& program,
                                     const Instruction& instruction,
                                     const Operands& memory) {
  const Slot& table = *slot_at(program, instruction.arguments, 0);
  return std::make_unique<LookUpKernel>(memory.operand(id_at(instruction.arguments, 0)),
                                        memory.operand(id_at(instruction.arguments, 1)),
                                        memory.operand(id_at(instruction.results, 0)),
                                        Table{table.sizes[0], table.sizes[1]},
                                        numel(*slot_at(program, instruction.arguments, 1)));
}

// (grad, numbers, rows, padding, scale by frequency)
bool accepts_gradient(const StepProgram& program, const Instruction& instruction) {
  const Slot* const table = slot_at(program, instruction.results, 0);
  const Slot* const numbers = slot_at(program, instruction.arguments, 1);
  const Slot* const grad = slot_at(program, instruction.arguments, 0);
  return are_table_and_numbers(table, numbers) && lines_of(grad, *numbers, table->sizes[1]) &&
         is_integer(instruction.arguments[3]) && is_constant(instruction.arguments[4], 0.0);
}

std::unique_ptr<Kernel> make_gradient(const StepProgram& program,
                                      const Instruction& instruction,
                                      const Operands& memory) {
  const Slot& table = *slot_at(program, instruction.results, 0);
  const Slot& numbers = *slot_at(program, instruction.arguments, 1);
  const Slot* const grad = slot_at(program, instruction.arguments, 0);
  return std::make_unique<GradientKernel>(memory.operand(id_at(instruction.arguments, 0)),
                                          memory.operand(id_at(instruction.arguments, 1)),
                                          memory.operand(id_at(instruction.results, 0)),
                                          *lines_of(grad, numbers, table.sizes[1]),
                                          Table{table.sizes[0], table.sizes[1]},
                                          numel(numbers),
                                          instruction.arguments[3].constant.toInt());
}

}  // namespace

std::vector<OwnKernel> embedding_kernels() {
  return {{"aten::embedding", accepts_look_up, make_look_up},
          {"aten::embedding_dense_backward", accepts_gradient, make_gradient}};
}

}  // namespace rondo
