#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/parallel.h"
#include "tracing/kernels/kernel.h"
#include "tracing/program/step_program.h"

namespace rondo {

/// How tensors whose elements are paired lie in memory: planes of rows. The elements of a row lie
/// side by side in the first tensor; the others may have steps between them. A tensor that is
/// repeated along a dimension has a step of 0 there.
struct Rows {
  static constexpr size_t kMostTensors = 3;
  using Steps = std::array<int64_t, kMostTensors>;  ///< elements, one a tensor

  int64_t planes = 1;
  int64_t count = 1;  ///< rows of a plane
  int64_t width = 1;  ///< elements of a row
  Steps plane_steps = {};
  Steps row_steps = {};
  Steps element_steps = {};

  /// The elements of all tensors where they lie side by side, one for one; else 0.
  int64_t elements() const { return planes == 1 && count == 1 ? width : 0; }

  /// Elements from the first one of a tensor to a row's.
  int64_t offset(size_t tensor, int64_t plane, int64_t row) const {
    return plane * plane_steps[tensor] + row * row_steps[tensor];
  }
};

/// Calls `use(plane, row)` for each row.
template <class Use>
void for_each_row(const Rows& rows, Use use) {
  for (int64_t plane = 0; plane < rows.planes; ++plane) {
    for (int64_t row = 0; row < rows.count; ++row) {
      use(plane, row);
    }
  }
}

/// Runs a kernel whose elements lie side by side, on LibTorch's threads.
void run_in_parts(ElementwiseKernel& kernel);

/// Runs a kernel on LibTorch's threads: in parts where its elements lie side by side, else by
/// `run_row(plane, row)`.
template <class RunRow>
void run_in_parts_or_rows(ElementwiseKernel& kernel, const Rows& rows, RunRow run_row) {
  if (kernel.elements() > 0) {
    run_in_parts(kernel);
    return;
  }
  parallel_for_each(rows.planes * rows.count, rows.width, [&](int64_t i) {
    run_row(i / rows.count, i % rows.count);
  });
}

/// The order of dimensions that suits the first tensor, and the fewest rows that suit all; none
/// where its elements are never side by side, there are more than three dimensions that do not
/// join, or no elements.
/// \param tensors  the first has the shape; the others have it too, or are repeated to it
std::optional<Rows> common_rows(const std::vector<const Slot*>& tensors);

/// The rows of an instruction's result and of its first arguments; none when elements of a row are
/// not side by side in one of them.
/// \param may_be  whether an instruction may have these, result first, for its dtypes
std::optional<Rows> instruction_rows(const StepProgram& program,
                                     const Instruction& instruction,
                                     size_t inputs,
                                     bool (*may_be)(const std::vector<const Slot*>& tensors));

/// The same; none when one of them is not float32.
std::optional<Rows> float_rows(const StepProgram& program,
                               const Instruction& instruction,
                               size_t inputs);

}  // namespace rondo
