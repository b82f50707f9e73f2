// Compiled with -ffp-contract=off (tracing/CMakeLists.txt), see core/vector_loop.h.

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/parallel.h"
#include "tracing/kernels/images/pair_pooling.h"
#include "tracing/kernels/kernels.h"
#include "tracing/kernels/stored_numbers.h"
#include "tracing/program/arguments.h"

namespace rondo {

namespace {

/// Sizes of a pooling without padding and dilation.
struct Pooling {
  int64_t planes;  // batch times channels
  int64_t height;
  int64_t width;
  int64_t out_height;
  int64_t out_width;
  int64_t kernel[2];
  int64_t stride[2];

  int64_t size() const { return height * width; }

  int64_t windows() const { return out_height * out_width; }
};

template <class Stored>
class MaxPoolKernel final : public Kernel {
 public:
  MaxPoolKernel(const Pooling& pooling, Operand input, Operand result, Operand indices)
      : p_(pooling), input_(input), result_(result), indices_(indices) {}

  void run() override {
    parallel_for_each(p_.planes, p_.size(), [this](int64_t plane) {
      pool(input_.as<Stored>() + plane * p_.size(),
           result_.as<Stored>() + plane * p_.windows(),
           indices_.as<int64_t>() + plane * p_.windows());
    });
  }

 private:
  void pool(const Stored* x, Stored* y, int64_t* indices) const {
    constexpr float kLeast = -std::numeric_limits<float>::infinity();
    for (int64_t i = 0; i < p_.out_height; ++i) {
      for (int64_t j = 0; j < p_.out_width; ++j) {
        const int64_t corner = i * p_.stride[0] * p_.width + j * p_.stride[1];
        Largest<float, int64_t> largest = {kLeast, corner};
        for (int64_t k = 0; k < p_.kernel[0]; ++k) {
          for (int64_t l = 0; l < p_.kernel[1]; ++l) {
            const int64_t place = corner + k * p_.width + l;
            largest.offer(number_in(x[place]), place);
          }
        }
        store(largest.value, y[i * p_.out_width + j]);
        indices[i * p_.out_width + j] = largest.place;
      }
    }
  }

  Pooling p_;
  Operand input_;
  Operand result_;
  Operand indices_;
};

/// Each gradient is added where its number came from; one that came from nowhere (-1) is left out.
template <class Stored>
class MaxPoolBackwardKernel final : public Kernel {
 public:
  MaxPoolBackwardKernel(const Pooling& pooling, Operand grad, Operand indices, Operand result)
      : p_(pooling), grad_(grad), indices_(indices), result_(result) {}

  void run() override {
    parallel_for_each(p_.planes, p_.size(), [this](int64_t plane) {
      const Stored* const grad = grad_.as<Stored>() + plane * p_.windows();
      const int64_t* const indices = indices_.as<int64_t>() + plane * p_.windows();
      Stored* const y = result_.as<Stored>() + plane * p_.size();
      std::memset(y, 0, static_cast<size_t>(p_.size()) * sizeof(Stored));
      for (int64_t i = 0; i < p_.windows(); ++i) {
        if (indices[i] >= 0 && indices[i] < p_.size()) {
          Stored& to = y[indices[i]];
          store(number_in(to) + number_in(grad[i]), to);
        }
      }
    });
  }

 private:
  Pooling p_;
  Operand grad_;
  Operand indices_;
  Operand result_;
};

/// Elements as they are.
struct Itself {
  static constexpr bool kMayBeNaN = true;

  template <class Value>
  RONDO_AVX2 RONDO_INLINE Value operator()(Value x) const {
    return x;
  }
};

/// Places in the plane, of which a part that begins at `first` is pooled.
struct PlacesInPlane {
  using Stored = int64_t;

  int64_t width;
  int64_t first = 0;

  RONDO_AVX2 RONDO_INLINE int64_t at(int64_t corner, int64_t k) const {
    return first + corner + k / 2 * width + k % 2;
  }

  RONDO_AVX2 RONDO_INLINE LaneInts lanes_at(int64_t corner, int64_t k) const {
    const LaneInts windows = {0, 2, 8, 10, 4, 6, 12, 14};
    return windows + static_cast<int32_t>(at(corner, k));
  }

  RONDO_AVX2 RONDO_INLINE void store(const Largest<float, int64_t>& largest, int64_t* to) const {
    *to = largest.place;
  }

  RONDO_AVX2 RONDO_INLINE void store(const Largest<Lanes, LaneInts>& largest, int64_t* to) const {
    for (int64_t i = 0; i < kLanes; ++i) {
      to[i] = largest.place[i];
    }
  }
};

class PairPoolKernel final : public Kernel {
 public:
  PairPoolKernel(const Pooling& pooling, Operand input, Operand result, Operand indices)
      : planes_(pooling.planes),
        plane_{pooling.height, pooling.width},
        input_(input),
        result_(result),
        indices_(indices) {}

  void run() override {
    const PairPooling pooling(plane_, Itself(), PlacesInPlane{plane_.width});
    parallel_for_each(planes_, plane_.size(), [&](int64_t i) {
      pooling.pool(input_.as<float>() + i * plane_.size(),
                   result_.as<float>() + i * plane_.windows(),
                   indices_.as<int64_t>() + i * plane_.windows());
    });
  }

 private:
  int64_t planes_;
  PairedPlane plane_;
  Operand input_;
  Operand result_;
  Operand indices_;
};

/// The same of bfloat16: some rows of windows at a time are widened, pooled and rounded.
class NarrowPairPoolKernel final : public Kernel {
 public:
  static constexpr int64_t kPart = 4096;  // elements

  /// \param pooling  of at most kPart / 2 columns
  NarrowPairPoolKernel(const Pooling& pooling, Operand input, Operand result, Operand indices)
      : planes_(pooling.planes),
        plane_{pooling.height, pooling.width},
        input_(input),
        result_(result),
        indices_(indices) {}

  void run() override {
    parallel_for_each(planes_, plane_.size(), [&](int64_t i) {
      const int64_t rows_of_part = kPart / plane_.width / 2 * 2;
      for (int64_t row = 0; row < plane_.height; row += rows_of_part) {
        pool(i, row, std::min(rows_of_part, plane_.height - row));
      }
    });
  }

 private:
  void pool(int64_t plane, int64_t row, int64_t rows) const {
    const PairedPlane part = {rows, plane_.width};
    const int64_t first = row * plane_.width;
    const int64_t to = plane * plane_.windows() + row / 2 * plane_.out_width();
    float x[kPart];
    float y[kPart / 2];
    const BFloat16Bits* const input = input_.as<BFloat16Bits>() + plane * plane_.size() + first;
    stored_loop<BFloat16Bits>(
        [&x, input](int64_t i) RONDO_INLINE_LAMBDA { x[i] = number_in(input[i]); }, part.size());
    const PairPooling pooling(part, Itself(), PlacesInPlane{plane_.width, first});
    pooling.pool(x, y, indices_.as<int64_t>() + to);
    BFloat16Bits* const result = result_.as<BFloat16Bits>() + to;
    stored_loop<BFloat16Bits>(
        [&y, result](int64_t i) RONDO_INLINE_LAMBDA { store(y[i], result[i]); }, part.windows());
  }

  int64_t planes_;
  PairedPlane plane_;
  Operand input_;
  Operand result_;
  Operand indices_;
};

bool is_pair_pooling(const Pooling& p) {
  return p.kernel[0] == 2 && p.kernel[1] == 2 && p.stride[0] == 2 && p.stride[1] == 2 &&
         p.out_height == p.height / 2 && p.out_width == p.width / 2 &&
         p.height * p.width < std::numeric_limits<int32_t>::max();
}

// A list of one number stands for both dimensions.
bool read_pair(const Argument& argument, int64_t* pair) {
  if (argument.kind != Argument::Kind::Constant || !argument.constant.isIntList()) {
    return false;
  }
  const std::vector<int64_t> values = argument.constant.toIntVector();
  if (values.empty() || values.size() > 2) {
    return false;
  }
  pair[0] = values.front();
  pair[1] = values.back();
  return true;
}

bool is_pair_of(const Argument& argument, int64_t value) {
  int64_t pair[2];
  return read_pair(argument, pair) && pair[0] == value && pair[1] == value;
}

// From one argument on: kernel_size, stride, padding, dilation, ceil_mode.
bool has_known_options(const std::vector<Argument>& arguments, size_t first) {
  int64_t pair[2];
  return read_pair(arguments[first], pair) && is_pair_of(arguments[first + 2], 0) &&
         is_pair_of(arguments[first + 3], 1) && is_constant(arguments[first + 4], 0.0);
}

// Images of float32 or bfloat16, row after row.
bool are_images(const Slot* x, const Slot* pooled) {
  return x != nullptr && pooled != nullptr && x->sizes.size() == 4 && pooled->sizes.size() == 4 &&
         is_stored(x->dtype) && pooled->dtype == x->dtype && x->sizes[0] == pooled->sizes[0] &&
         x->sizes[1] == pooled->sizes[1] && is_contiguous(*x) && is_contiguous(*pooled);
}

bool are_places(const Slot* indices, const Slot& pooled) {
  return indices != nullptr && indices->dtype == at::kLong && indices->sizes == pooled.sizes &&
         is_contiguous(*indices);
}

bool accepts(const StepProgram& program, const Instruction& instruction) {
  const Slot* const indices = slot_at(program, instruction.results, 1);
  return are_images(slot_at(program, instruction.arguments, 0),
                    slot_at(program, instruction.results, 0)) &&
         are_places(indices, *slot_at(program, instruction.results, 0)) &&
         has_known_options(instruction.arguments, 1);
}

// (grad, input, kernel_size, stride, padding, dilation, ceil_mode, indices)
bool accepts_backward(const StepProgram& program, const Instruction& instruction) {
  const Slot* const grad = slot_at(program, instruction.arguments, 0);
  const Slot* const indices = slot_at(program, instruction.arguments, 7);
  return are_images(slot_at(program, instruction.results, 0), grad) && are_places(indices, *grad) &&
         has_known_options(instruction.arguments, 2);
}

/// \param first  of the arguments that are options
Pooling pooling_of(const Slot& x,
                   const Slot& pooled,
                   const std::vector<Argument>& arguments,
                   size_t first) {
  Pooling pooling{
      x.sizes[0] * x.sizes[1], x.sizes[2], x.sizes[3], pooled.sizes[2], pooled.sizes[3], {}, {}};
  read_pair(arguments[first], pooling.kernel);
  if (!read_pair(arguments[first + 1], pooling.stride)) {
    read_pair(arguments[first], pooling.stride);
  }
  return pooling;
}

std::unique_ptr<Kernel> make(const StepProgram& program,
                             const Instruction& instruction,
                             const Operands& memory) {
  const Slot& input = *slot_at(program, instruction.arguments, 0);
  const Pooling pooling = pooling_of(
      input, *slot_at(program, instruction.results, 0), instruction.arguments, /*first=*/1);
  const Operand x = memory.operand(id_at(instruction.arguments, 0));
  const Operand y = memory.operand(id_at(instruction.results, 0));
  const Operand indices = memory.operand(id_at(instruction.results, 1));
  const bool are_pairs =
      is_pair_pooling(pooling) && widest_instruction_set() == InstructionSet::Avx2;
  if (are_pairs && input.dtype == at::kFloat) {
    return std::make_unique<PairPoolKernel>(pooling, x, y, indices);
  }
  if (are_pairs && pooling.width <= NarrowPairPoolKernel::kPart / 2) {
    return std::make_unique<NarrowPairPoolKernel>(pooling, x, y, indices);
  }
  return with_stored(input.dtype, [&](auto stored) -> std::unique_ptr<Kernel> {
    return std::make_unique<MaxPoolKernel<decltype(stored)>>(pooling, x, y, indices);
  });
}

std::unique_ptr<Kernel> make_backward(const StepProgram& program,
                                      const Instruction& instruction,
                                      const Operands& memory) {
  const Slot& result = *slot_at(program, instruction.results, 0);
  const Pooling pooling = pooling_of(
      result, *slot_at(program, instruction.arguments, 0), instruction.arguments, /*first=*/2);
  return with_stored(result.dtype, [&](auto stored) -> std::unique_ptr<Kernel> {
    return std::make_unique<MaxPoolBackwardKernel<decltype(stored)>>(
        pooling,
        memory.operand(id_at(instruction.arguments, 0)),
        memory.operand(id_at(instruction.arguments, 7)),
        memory.operand(id_at(instruction.results, 0)));
  });
}

}  // namespace

std::vector<OwnKernel> max_pool_kernels() {
  return {{"aten::max_pool2d_with_indices", accepts, make},
          {"aten::max_pool2d_with_indices_backward", accepts_backward, make_backward}};
}

}  // namespace rondo
