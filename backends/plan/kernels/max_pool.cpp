// Compiled with -ffp-contract=off (backends/CMakeLists.txt), see core/vector_loop.h.

#include <ATen/Parallel.h>

#include <limits>

#include "backends/plan/kernels/arguments.h"
#include "backends/plan/kernels/kernels.h"
#include "core/vector_loop.h"

namespace rondo {

namespace {

// Sizes of a pooling without padding and dilation.
struct Pooling {
  int64_t planes;  // batch times channels
  int64_t height;
  int64_t width;
  int64_t out_height;
  int64_t out_width;
  int64_t kernel[2];
  int64_t stride[2];
};

/// The first largest element of a window, and its place in the plane; a NaN wins.
template <class Value, class Place>
struct Largest {
  Value value;
  Place place;

  RONDO_INLINE void offer(Value other, Place other_place) {
    const auto wins = (other > value) | (other != other);
    value = wins ? other : value;
    place = wins ? other_place : place;
  }
};

constexpr float kLeast = -std::numeric_limits<float>::infinity();

class MaxPoolKernel final : public Kernel {
 public:
  MaxPoolKernel(const Pooling& pooling, Operand input, Operand result, Operand indices)
      : p_(pooling), input_(input), result_(result), indices_(indices) {}

  void run() override {
    at::parallel_for(0, p_.planes, 1, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) {
        pool(input_.as<float>() + plane * p_.height * p_.width,
             result_.as<float>() + plane * p_.out_height * p_.out_width,
             indices_.as<int64_t>() + plane * p_.out_height * p_.out_width);
      }
    });
  }

 private:
  void pool(const float* x, float* y, int64_t* indices) const {
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

/// Windows of two by two side by side, eight at a time.
class PairPoolKernel final : public Kernel {
 public:
  PairPoolKernel(const Pooling& pooling, Operand input, Operand result, Operand indices)
      : p_(pooling), input_(input), result_(result), indices_(indices) {}

  void run() override {
    at::parallel_for(0, p_.planes, 1, [&](int64_t begin, int64_t end) {
      const Planes planes = {p_, input_.as<float>(), result_.as<float>(), indices_.as<int64_t>()};
      vector_loop([=](int64_t i) RONDO_INLINE_LAMBDA { planes.pool(begin + i); }, end - begin);
    });
  }

 private:
  static constexpr int64_t kWidth = 8;
  using Floats = float __attribute__((vector_size(4 * kWidth)));
  using Ints = int32_t __attribute__((vector_size(4 * kWidth)));
  using Longs = int64_t __attribute__((vector_size(8 * kWidth)));

  struct Planes {
    Pooling p;
    const float* input;
    float* result;
    int64_t* indices;

    // A row's last windows are computed together with what lies behind the row; the next row
    // overwrites those. Where nothing lies behind, one by one.
    RONDO_INLINE void pool(int64_t plane) const {
      const int64_t in_size = p.height * p.width;
      const int64_t out_size = p.out_height * p.out_width;
      const float* const x = input + plane * in_size;
      float* const y = result + plane * out_size;
      int64_t* const places = indices + plane * out_size;
      for (int64_t i = 0; i < p.out_height; ++i) {
        for (int64_t j = 0; j < p.out_width;) {
          const int64_t corner = 2 * (i * p.width + j);
          const int64_t out = i * p.out_width + j;
          if (corner + p.width + 2 * kWidth <= in_size && out + kWidth <= out_size) {
            pool_eight(x, corner, y + out, places + out);
            j += kWidth;
          } else {
            pool_one(x, corner, y + out, places + out);
            ++j;
          }
        }
      }
    }

    RONDO_INLINE void pool_eight(const float* x, int64_t corner, float* y, int64_t* places) const {
      const Ints lane = {0, 2, 4, 6, 8, 10, 12, 14};
      const Ints first = lane + static_cast<int32_t>(corner);
      const auto width = static_cast<int32_t>(p.width);
      const Floats least = Floats{} + kLeast;
      Largest<Floats, Ints> largest = {least, first};
      largest.offer(every_other(x + corner, 0), first);
      largest.offer(every_other(x + corner, 1), first + 1);
      largest.offer(every_other(x + corner + p.width, 0), first + width);
      largest.offer(every_other(x + corner + p.width, 1), first + width + 1);
      const Longs wide = __builtin_convertvector(largest.place, Longs);
      __builtin_memcpy(y, &largest.value, sizeof largest.value);
      __builtin_memcpy(places, &wide, sizeof wide);
    }

    RONDO_INLINE void pool_one(const float* x, int64_t corner, float* y, int64_t* places) const {
      Largest<float, int64_t> largest = {kLeast, corner};
      for (const int64_t place : {corner, corner + 1, corner + p.width, corner + p.width + 1}) {
        largest.offer(x[place], place);
      }
      *y = largest.value;
      *places = largest.place;
    }

    /// Eight of sixteen floats, from the first or the second on.
    static RONDO_INLINE Floats every_other(const float* x, int32_t from) {
      Floats low;
      Floats high;
      __builtin_memcpy(&low, x, sizeof low);
      __builtin_memcpy(&high, x + kWidth, sizeof high);
      return from == 0 ? __builtin_shufflevector(low, high, 0, 2, 4, 6, 8, 10, 12, 14)
                       : __builtin_shufflevector(low, high, 1, 3, 5, 7, 9, 11, 13, 15);
    }
  };

  Pooling p_;
  Operand input_;
  Operand result_;
  Operand indices_;
};

bool is_pair_pooling(const Pooling& p) {
  return p.kernel[0] == 2 && p.kernel[1] == 2 && p.stride[0] == 2 && p.stride[1] == 2 &&
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
                             const PlanMemory& memory) {
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
  if (is_pair_pooling(pooling)) {
    return std::make_unique<PairPoolKernel>(pooling, x, y, indices);
  }
  return std::make_unique<MaxPoolKernel>(pooling, x, y, indices);
}

}  // namespace

std::vector<OwnKernel> max_pool_kernels() {
  return {{"aten::max_pool2d_with_indices", accepts, make}};
}

}  // namespace rondo
