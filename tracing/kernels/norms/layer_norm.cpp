// Compiled with -ffp-contract=off (tracing/CMakeLists.txt): what LibTorch's AVX2 build fuses is
// written as `fma`. See core/vector_loop.h.

#include <algorithm>

#include "core/parallel.h"
#include "tracing/kernels/kernels.h"
#include "tracing/kernels/lanes.h"
#include "tracing/program/arguments.h"

namespace rondo {

namespace {

// Each number of a row waits for the one before, in each of eight lanes. Several rows side by side
// keep the order of each and do not wait.
// Source: LayerNormKernelImplInternal, ATen/native/cpu/layer_norm_kernel.cpp, and RowwiseMoments,
// ATen/native/cpu/moments_utils.h.
constexpr int64_t kRows = 4;
constexpr int64_t kChunk = 16;  // vectors
constexpr int64_t kMostDepth = 16;

/// Mean and sum of squared distances of `count` numbers in each lane.
struct Moments {
  Lanes mean;
  Lanes squares;
};

/// How many levels of sums there are over `chunks` chunks.
int64_t depth_of(int64_t chunks) {
  int64_t depth = 1;
  while ((int64_t{1} << depth) < chunks) {
    ++depth;
  }
  return depth;
}

/// Takes the moments of `more` numbers into those of `count` others.
template <ProductSum kSum, class Value>
RONDO_AVX2 RONDO_INLINE void add_moments(
    int64_t more, Value more_mean, Value more_squares, int64_t count, Value& mean, Value& squares) {
  const float share =
      more + count == 0 ? 0.0F : static_cast<float>(more) / static_cast<float>(more + count);
  const Value delta = more_mean - mean;
  mean = add_product<kSum>(Value{} + share, delta, mean);
  squares +=
      add_product<kSum>(delta * delta * share, Value{} + static_cast<float>(count), more_squares);
}

/// The moments of kCount rows, which lie `width` apart, lane by lane.
template <ProductSum kSum, int64_t kCount>
class RowMoments {
 public:
  RONDO_AVX2 RowMoments(const float* x, int64_t width) {
    const int64_t vectors = width / kLanes;
    const int64_t chunks = (vectors + kChunk - 1) / kChunk;
    const int64_t depth = depth_of(chunks);
    for (int64_t level = 0; level < depth; ++level) {
      clear(level);
    }
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      const int64_t count = std::min(kChunk, vectors - chunk * kChunk);
      add_chunk(x + chunk * kChunk * kLanes, width, count);
      for (int64_t level = 1, mask = chunk + 1; level < depth && mask % 2 == 0;
           ++level, mask /= 2) {
        carry(level - 1, level);
        clear(level - 1);
      }
    }
    for (int64_t level = 1; level < depth; ++level) {
      carry(level, 0);
    }
    join_lanes(vectors);
  }

  float mean(int64_t row) const { return means_[row]; }

  float squares(int64_t row) const { return squares_[row]; }

 private:
  RONDO_AVX2 RONDO_INLINE void clear(int64_t level) {
    counts_[level] = 0;
    for (int64_t row = 0; row < kCount; ++row) {
      levels_[level][row] = {Lanes{}, Lanes{}};
    }
  }

  RONDO_AVX2 RONDO_INLINE void add_chunk(const float* x, int64_t width, int64_t count) {
    Moments chunk[kCount] = {};
    for (int64_t i = 0; i < count; ++i) {
      const float share = 1.0F / static_cast<float>(i + 1);
      for (int64_t row = 0; row < kCount; ++row) {
        const Lanes numbers = load(x + row * width + i * kLanes);
        Moments& of = chunk[row];
        const Lanes delta = numbers - of.mean;
        of.mean = add_product<kSum>(delta, share - Lanes{}, of.mean);
        of.squares = add_product<kSum>(delta, numbers - of.mean, of.squares);
      }
    }
    for (int64_t row = 0; row < kCount; ++row) {
      Moments& of = levels_[0][row];
      add_moments<kSum>(
          count, chunk[row].mean, chunk[row].squares, counts_[0], of.mean, of.squares);
    }
    counts_[0] += count;
  }

  RONDO_AVX2 void carry(int64_t from, int64_t to) {
    for (int64_t row = 0; row < kCount; ++row) {
      const Moments& more = levels_[from][row];
      Moments& of = levels_[to][row];
      add_moments<kSum>(counts_[from], more.mean, more.squares, counts_[to], of.mean, of.squares);
    }
    counts_[to] += counts_[from];
  }

  RONDO_AVX2 RONDO_INLINE void join_lanes(int64_t vectors) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      for (int64_t row = 0; row < kCount; ++row) {
        const Moments& of = levels_[0][row];
        add_moments<kSum>(
            vectors, of.mean[lane], of.squares[lane], lane * vectors, means_[row], squares_[row]);
      }
    }
  }

  Moments levels_[kMostDepth][kCount];  // those of the depth in use are cleared
  int64_t counts_[kMostDepth];
  float means_[kCount] = {};
  float squares_[kCount] = {};
};

// What builds of LibTorch differ in: how moments are added up, and how a number is centred.

struct LibTorch113 {
  static constexpr ProductSum kMoments = ProductSum::Rounded;

  static RONDO_AVX2 RONDO_INLINE float centred(float x, float mean, float deviation) {
    return __builtin_fmaf(x, deviation, -deviation * mean);
  }
};

struct LibTorch26 {
  static constexpr ProductSum kMoments = ProductSum::Fused;

  static RONDO_AVX2 RONDO_INLINE float centred(float x, float mean, float deviation) {
    return (x - mean) * deviation;
  }
};

/// Rows that are normalised one by one.
struct Rows {
  int64_t count;
  int64_t width;  ///< a multiple of a vector's
};

/// Of `x`, over the dimensions of `weight`.
Rows rows_of(const Slot& x, const Slot& weight) {
  const int64_t width = numel(weight);
  return {width == 0 ? 0 : numel(x) / width, width};
}

/// Arguments and results.
struct Tensors {
  Operand x;
  Operand weight;
  Operand bias;
  Operand y;
  Operand mean;
  Operand inverse_deviation;
};

template <class LibTorch>
class LayerNormKernel final : public Kernel {
 public:
  LayerNormKernel(const Tensors& tensors, Rows rows, float eps)
      : t_(tensors), rows_(rows), eps_(eps) {}

  void run() override {
    parallel_for(rows_.count, grain_of(rows_.width), [this](int64_t begin, int64_t end) {
      int64_t row = begin;
      for (; row + kRows <= end; row += kRows) {
        run_rows<kRows>(row);
      }
      for (; row < end; ++row) {
        run_rows<1>(row);
      }
    });
  }

 private:
  template <int64_t kCount>
  RONDO_AVX2 void run_rows(int64_t first) const {
    const RowMoments<LibTorch::kMoments, kCount> moments(t_.x.as<float>() + first * rows_.width,
                                                         rows_.width);
    for (int64_t i = 0; i < kCount; ++i) {
      const float mean = moments.mean(i);
      const float variance = moments.squares(i) / static_cast<float>(rows_.width);
      const float deviation = 1.0F / __builtin_sqrtf(variance + eps_);
      t_.mean.as<float>()[first + i] = mean;
      t_.inverse_deviation.as<float>()[first + i] = deviation;
      normalise(first + i, mean, deviation);
    }
  }

  RONDO_AVX2 RONDO_INLINE void normalise(int64_t row, float mean, float deviation) const {
    const float* const x = t_.x.as<float>() + row * rows_.width;
    const float* const weight = t_.weight.as<float>();
    const float* const bias = t_.bias.as<float>();
    float* const y = t_.y.as<float>() + row * rows_.width;
    for (int64_t i = 0; i < rows_.width; ++i) {
      y[i] = __builtin_fmaf(LibTorch::centred(x[i], mean, deviation), weight[i], bias[i]);
    }
  }

  Tensors t_;
  Rows rows_;
  float eps_;
};

// (input, normalized_shape, weight, bias, eps)
bool accepts(const StepProgram& program, const Instruction& instruction) {
  if (!are_plain_floats(program, instruction.arguments, {0, 2, 3}) ||
      !are_plain_floats(program, instruction.results, {0, 1, 2})) {
    return false;
  }
  constexpr int64_t kWidest = int64_t{1} << 20;
  const Rows rows = rows_of(*slot_at(program, instruction.arguments, 0),
                            *slot_at(program, instruction.arguments, 2));
  return widest_instruction_set() == InstructionSet::Avx2 && rows.count > 0 &&
         rows.width <= kWidest && rows.width % kLanes == 0;
}

template <class LibTorch>
std::unique_ptr<Kernel> make(const StepProgram& program,
                             const Instruction& instruction,
                             const Operands& memory) {
  const auto argument = [&](size_t i) { return memory.operand(id_at(instruction.arguments, i)); };
  const auto result = [&](size_t i) { return memory.operand(id_at(instruction.results, i)); };
  return std::make_unique<LayerNormKernel<LibTorch>>(
      Tensors{argument(0), argument(2), argument(3), result(0), result(1), result(2)},
      rows_of(*slot_at(program, instruction.arguments, 0),
              *slot_at(program, instruction.arguments, 2)),
      static_cast<float>(instruction.arguments[4].constant.toDouble()));
}

}  // namespace

std::vector<OwnKernel> layer_norm_kernels() {
  return {{"aten::native_layer_norm", accepts, make<LibTorch113>},
          {"aten::native_layer_norm", accepts, make<LibTorch26>}};
}

}  // namespace rondo
