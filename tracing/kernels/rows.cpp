#include "tracing/kernels/rows.h"

#include <algorithm>

#include "tracing/program/arguments.h"

namespace rondo {

namespace {

/// One dimension of all tensors together.
struct Dimension {
  int64_t size;
  Rows::Steps steps;
};

/// The step of a tensor along a dimension of the shape, which counts from the last one; none where
/// its size is another.
std::optional<int64_t> step_along(const Slot& tensor, size_t from_last, int64_t size) {
  if (from_last >= tensor.sizes.size()) {
    return 0;
  }
  const size_t d = tensor.sizes.size() - 1 - from_last;
  if (tensor.sizes[d] == size) {
    return tensor.strides[d];
  }
  return tensor.sizes[d] == 1 ? std::optional<int64_t>(0) : std::nullopt;
}

/// Dimensions of more than one element, outermost first; none where the shapes do not suit.
std::optional<std::vector<Dimension>> dimensions_of(const std::vector<const Slot*>& tensors) {
  const Slot& shape = *tensors.front();
  const auto is_deeper = [&](const Slot* tensor) {
    return tensor->sizes.size() > shape.sizes.size();
  };
  if (std::any_of(tensors.begin(), tensors.end(), is_deeper)) {
    return std::nullopt;
  }
  std::vector<Dimension> dimensions;
  for (size_t d = 0; d < shape.sizes.size(); ++d) {
    Dimension dimension{shape.sizes[d], {}};
    for (size_t t = 0; t < tensors.size(); ++t) {
      const auto step = step_along(*tensors[t], shape.sizes.size() - 1 - d, dimension.size);
      if (!step) {
        return std::nullopt;
      }
      dimension.steps[t] = *step;
    }
    const bool is_repeated = dimension.steps[0] == 0;
    if (dimension.size == 0 || (dimension.size > 1 && is_repeated)) {
      return std::nullopt;
    }
    if (dimension.size > 1) {
      dimensions.push_back(dimension);
    }
  }
  std::stable_sort(dimensions.begin(), dimensions.end(), [](const auto& a, const auto& b) {
    return a.steps[0] > b.steps[0];
  });
  return dimensions;
}

/// Whether all tensors go on after the inner dimension's last element where the outer one's next
/// begins.
bool is_continued(const Dimension& outer, const Dimension& inner) {
  for (size_t t = 0; t < Rows::kMostTensors; ++t) {
    if (outer.steps[t] != inner.steps[t] * inner.size) {
      return false;
    }
  }
  return true;
}

std::vector<Dimension> merged(const std::vector<Dimension>& dimensions) {
  std::vector<Dimension> fewest;
  for (const Dimension& dimension : dimensions) {
    if (!fewest.empty() && is_continued(fewest.back(), dimension)) {
      fewest.back() = {fewest.back().size * dimension.size, dimension.steps};
    } else {
      fewest.push_back(dimension);
    }
  }
  return fewest;
}

}  // namespace

void run_in_parts(ElementwiseKernel& kernel) {
  constexpr int64_t kPart = 4096;  // elements
  const int64_t elements = kernel.elements();
  const int64_t parts = (elements + kPart - 1) / kPart;
  parallel_for(parts, grain_of(kPart), [&](int64_t begin, int64_t end) {
    kernel.run_part(begin * kPart, std::min(end * kPart, elements) - begin * kPart);
  });
}

std::optional<Rows> common_rows(const std::vector<const Slot*>& tensors) {
  const auto dimensions = dimensions_of(tensors);
  if (!dimensions) {
    return std::nullopt;
  }
  std::vector<Dimension> fewest = merged(*dimensions);
  if (fewest.empty()) {
    return Rows();
  }
  if (fewest.back().steps[0] != 1) {
    return std::nullopt;
  }
  Rows rows;
  rows.width = fewest.back().size;
  rows.element_steps = fewest.back().steps;
  fewest.pop_back();
  if (!fewest.empty()) {
    rows.count = fewest.back().size;
    rows.row_steps = fewest.back().steps;
    fewest.pop_back();
  }
  if (!fewest.empty()) {
    rows.planes = fewest.back().size;
    rows.plane_steps = fewest.back().steps;
    fewest.pop_back();
  }
  return fewest.empty() ? std::optional(rows) : std::nullopt;
}

std::optional<Rows> instruction_rows(const StepProgram& program,
                                     const Instruction& instruction,
                                     size_t inputs,
                                     bool (*may_be)(const std::vector<const Slot*>& tensors)) {
  std::vector<const Slot*> tensors = {slot_at(program, instruction.results, 0)};
  for (size_t i = 0; i < inputs; ++i) {
    tensors.push_back(slot_at(program, instruction.arguments, i));
  }
  const bool are_tensors = std::find(tensors.begin(), tensors.end(), nullptr) == tensors.end();
  if (!are_tensors || !may_be(tensors)) {
    return std::nullopt;
  }
  const auto rows = common_rows(tensors);
  for (size_t t = 0; rows && rows->width > 1 && t < tensors.size(); ++t) {
    if (rows->element_steps[t] != 1) {
      return std::nullopt;
    }
  }
  return rows;
}

std::optional<Rows> float_rows(const StepProgram& program,
                               const Instruction& instruction,
                               size_t inputs) {
  return instruction_rows(program, instruction, inputs, [](const std::vector<const Slot*>& all) {
    return std::all_of(
        all.begin(), all.end(), [](const Slot* slot) { return slot->dtype == at::kFloat; });
  });
}

}  // namespace rondo
