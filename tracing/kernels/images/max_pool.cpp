// Compiled with -ffp-contract=off (backends/CMakeLists.txt), see core/vector_loop.h.

#include <limits>

#include "core/parallel.h"
#include "tracing/kernels/images/pair_pooling.h"
#include "tracing/kernels/kernels.h"
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
};

class MaxPoolKernel final : public Kernel {
 public:
  MaxPoolKernel(const Pooling& pooling, Operand input, Operand result, Operand indices)
      : p_(pooling), input_(input), result_(result), indices_(indices) {}

  void run() override {
    parallel_for_each(p_.planes, p_.height * p_.width, [this](int64_t plane) {
      pool(input_.as<float>() + plane * p_.height * p_.width,
           result_.as<float>() + plane * p_.out_height * p_.out_width,
           indices_.as<int64_t>() + plane * p_.out_height * p_.out_width);
    });
  }

 private:
  void pool(const float* x, float* y, int64_t* indices) const {
    constexpr float kLeast = -std::numeric_limits<float>::infinity();
    for (int64_t i = 0; i < p_.out_height; ++i) {
      for (int64_t j = 0; j < p_.out_width; ++j) {
        const int64_t corner = i * p_.stride[0] * p_.width + j * p_.stride[1];
        Largest<float, int64_t> largest = {kLeast, corner};
        for (int64_t k = 0; k < p_.kernel[0]; ++k) {
          for (int64_t l = 0; l < p_.kernel[1]; ++l) {
            const int64_t place = corner + k * p_.width + l;
            largest.offer(x[place], place);
          }
        }
        y[i * p_.out_width + j] = largest.value;
        indices[i * p_.out_width + j] = largest.place;
      }
    }
  }

  Pooling p_;
  Operand input_;
  Operand result_;
  Operand indices_;
};

/// Elements as they are.
struct Itself {
  static constexpr bool kMayBeNaN = true;

  template <class Value>
  RONDO_AVX2 RONDO_INLINE Value operator()(Value x) const {
    return x;
  }
};

/// Places in the plane.
struct PlacesInPlane {
  using Stored = int64_t;

  int64_t width;

  RONDO_AVX2 RONDO_INLINE int64_t at(int64_t corner, int64_t k) const {
    return corner + k / 2 * width + k % 2;
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

bool accepts(const StepProgram& program, const Instruction& instruction) {
  const std::vector<Argument>& arguments = instruction.arguments;
  const Slot* const input = slot_at(program, arguments, 0);
  const Slot* const result = slot_at(program, instruction.results, 0);
  const Slot* const indices = slot_at(program, instruction.results, 1);
  int64_t pair[2];
  return is_plain_float(input) && input->sizes.size() == 4 && is_plain_float(result) &&
         indices != nullptr && is_contiguous(*indices) && read_pair(arguments[1], pair) &&
         is_pair_of(arguments[3], 0) && is_pair_of(arguments[4], 1) &&
         is_constant(arguments[5], 0.0);
}

std::unique_ptr<Kernel> make(const StepProgram& program,
                             const Instruction& instruction,
                             const Operands& memory) {
  const Slot& input = *slot_at(program, instruction.arguments, 0);
  const Slot& result = *slot_at(program, instruction.results, 0);
  Pooling pooling{input.sizes[0] * input.sizes[1],
                  input.sizes[2],
                  input.sizes[3],
                  result.sizes[2],
                  result.sizes[3],
                  {},
                  {}};
  read_pair(instruction.arguments[1], pooling.kernel);
  if (!read_pair(instruction.arguments[2], pooling.stride)) {
    read_pair(instruction.arguments[1], pooling.stride);
  }
  const Operand x = memory.operand(id_at(instruction.arguments, 0));
  const Operand y = memory.operand(id_at(instruction.results, 0));
  const Operand indices = memory.operand(id_at(instruction.results, 1));
  if (is_pair_pooling(pooling) && widest_instruction_set() == InstructionSet::Avx2) {
    return std::make_unique<PairPoolKernel>(pooling, x, y, indices);
  }
  return std::make_unique<MaxPoolKernel>(pooling, x, y, indices);
}

}  // namespace

std::vector<OwnKernel> max_pool_kernels() {
  return {{"aten::max_pool2d_with_indices", accepts, make}};
}

}  // namespace rondo
