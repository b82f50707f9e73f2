// Compiled with -ffp-contract=off (tracing/CMakeLists.txt), see core/vector_loop.h.

#include <algorithm>
#include <cstring>
#include <optional>

#include "core/vector_loop.h"
#include "tracing/kernels/kernels.h"
#include "tracing/kernels/rows.h"
#include "tracing/kernels/stored_numbers.h"
#include "tracing/program/arguments.h"

namespace rondo {

namespace {

/// A part of the result along its dimension.
struct Part {
  int64_t start;
  int64_t length;
};

/// Elements of the result, from where the first one lies, that are zero or come from a gradient.
struct Piece {
  int64_t begin;
  Rows rows;
  std::optional<Operand> gradient;
};

// What no gradient reaches is zero; the rest is 0 + gradient, as in a sum of tensors that are zero
// elsewhere: -0 becomes 0.
template <class Stored>
class GradientsOfPartsKernel final : public Kernel {
 public:
  GradientsOfPartsKernel(Operand result, std::vector<Piece> pieces)
      : result_(result), pieces_(std::move(pieces)) {}

  void run() override {
    for (const Piece& piece : pieces_) {
      piece.gradient ? write(piece, *piece.gradient) : clear(piece);
    }
  }

 private:
  void write(const Piece& piece, Operand gradient) {
    const Rows& rows = piece.rows;
    const int64_t step = rows.element_steps[1];
    for_each_row(rows, [&](int64_t plane, int64_t row) {
      Stored* const y = result_.as<Stored>() + piece.begin + rows.offset(0, plane, row);
      const Stored* const x = gradient.as<Stored>() + rows.offset(1, plane, row);
      if (step == 1) {
        stored_loop<Stored>([=](int64_t i)
                                RONDO_INLINE_LAMBDA { store(number_in(x[i]) + 0.0F, y[i]); },
                            rows.width);
      } else {
        for (int64_t i = 0; i < rows.width; ++i) {
          store(number_in(x[i * step]) + 0.0F, y[i]);
        }
      }
    });
  }

  void clear(const Piece& piece) {
    const Rows& rows = piece.rows;
    for_each_row(rows, [&](int64_t plane, int64_t row) {
      Stored* const y = result_.as<Stored>() + piece.begin + rows.offset(0, plane, row);
      std::memset(y, 0, static_cast<size_t>(rows.width) * sizeof(Stored));
    });
  }

  Operand result_;
  std::vector<Piece> pieces_;
};

size_t dim_of(const Instruction& instruction) {
  return static_cast<size_t>(instruction.arguments[2].constant.toInt());
}

// A gradient of `select` lacks the dimension.
Slot with_dim(Slot gradient, const Slot& whole, size_t dim) {
  if (gradient.sizes.size() < whole.sizes.size()) {
    const auto at = static_cast<std::ptrdiff_t>(dim);
    gradient.sizes.insert(gradient.sizes.begin() + at, 1);
    gradient.strides.insert(gradient.strides.begin() + at, 1);
  }
  return gradient;
}

// What lies between the parts, and before and behind them.
std::vector<Part> gaps_between(std::vector<Part> parts, int64_t size) {
  std::sort(parts.begin(), parts.end(), [](Part a, Part b) { return a.start < b.start; });
  parts.push_back({size, 0});
  std::vector<Part> gaps;
  int64_t end = 0;
  for (const Part part : parts) {
    if (part.start > end) {
      gaps.push_back({end, part.start - end});
    }
    end = part.start + part.length;
  }
  return gaps;
}

// (gradients, sizes, dim, starts), without memory for the gradients yet; none when some do not lie
// in rows.
std::optional<std::vector<Piece>> pieces_of(const StepProgram& program,
                                            const Instruction& instruction) {
  const Slot& whole = *slot_at(program, instruction.results, 0);
  const size_t dim = dim_of(instruction);
  const std::vector<int64_t> starts = instruction.arguments[3].constant.toIntVector();
  std::vector<Part> parts;
  std::vector<Piece> pieces;
  const auto add = [&](Part part, const Slot* gradient) {
    Slot target = whole;
    target.sizes[dim] = part.length;
    const auto rows =
        gradient == nullptr ? common_rows({&target}) : common_rows({&target, gradient});
    if (rows) {
      pieces.push_back({part.start * whole.strides[dim], *rows, std::nullopt});
    }
    return rows.has_value();
  };
  for (size_t i = 0; i < starts.size(); ++i) {
    const SlotId id = instruction.arguments[0].slots[i];
    const Slot gradient = with_dim(program.slots[static_cast<size_t>(id)], whole, dim);
    parts.push_back({starts[i], gradient.sizes[dim]});
    if (gradient.dtype != whole.dtype || !add(parts.back(), &gradient)) {
      return std::nullopt;
    }
  }
  for (const Part gap : gaps_between(parts, whole.sizes[dim])) {
    if (!add(gap, nullptr)) {
      return std::nullopt;
    }
  }
  return pieces;
}

// What a pass makes of a step is so; a file may say anything.
bool is_consistent(const StepProgram& program, const Instruction& instruction) {
  const std::vector<int64_t>& sizes = slot_at(program, instruction.results, 0)->sizes;
  const std::vector<SlotId>& gradients = instruction.arguments[0].slots;
  const std::vector<int64_t> starts = instruction.arguments[3].constant.toIntVector();
  const size_t dim = dim_of(instruction);
  if (dim >= sizes.size() || starts.size() != gradients.size() ||
      instruction.arguments[1].constant.toIntVector() != sizes) {
    return false;
  }
  std::vector<Part> parts;
  for (size_t i = 0; i < starts.size(); ++i) {
    if (gradients[i] == kNoTensor) {
      return false;
    }
    const Slot& gradient = program.slots[static_cast<size_t>(gradients[i])];
    const bool has_dim = gradient.sizes.size() == sizes.size();
    if (!has_dim && gradient.sizes.size() + 1 != sizes.size()) {
      return false;
    }
    parts.push_back({starts[i], has_dim ? gradient.sizes[dim] : 1});
  }
  std::sort(parts.begin(), parts.end(), [](Part a, Part b) { return a.start < b.start; });
  int64_t end = 0;
  for (const Part part : parts) {
    if (part.start < end || part.length > sizes[dim] - part.start) {
      return false;
    }
    end = part.start + part.length;
  }
  return true;
}

bool accepts(const StepProgram& program, const Instruction& instruction) {
  const Slot* const result = slot_at(program, instruction.results, 0);
  return result != nullptr && is_stored(result->dtype) && is_contiguous(*result) &&
         is_consistent(program, instruction) && pieces_of(program, instruction).has_value();
}

std::unique_ptr<Kernel> make(const StepProgram& program,
                             const Instruction& instruction,
                             const Operands& memory) {
  std::vector<Piece> pieces = *pieces_of(program, instruction);
  const std::vector<SlotId>& gradients = instruction.arguments[0].slots;
  for (size_t i = 0; i < gradients.size(); ++i) {
    pieces[i].gradient = memory.operand(gradients[i]);
  }
  const SlotId result = id_at(instruction.results, 0);
  const at::ScalarType dtype = program.slots[static_cast<size_t>(result)].dtype;
  return with_stored(dtype, [&](auto stored) -> std::unique_ptr<Kernel> {
    return std::make_unique<GradientsOfPartsKernel<decltype(stored)>>(memory.operand(result),
                                                                      std::move(pieces));
  });
}

}  // namespace

std::vector<OwnKernel> gradients_of_parts_kernels() {
  return {{"rondo::gradients_of_parts", accepts, make}};
}

}  // namespace rondo
