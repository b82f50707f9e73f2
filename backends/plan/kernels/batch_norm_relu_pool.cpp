// Compiled with -ffp-contract=off (backends/CMakeLists.txt), see core/vector_loop.h.

#include <ATen/Parallel.h>

#include <cmath>

#include "backends/plan/kernels/arguments.h"
#include "backends/plan/kernels/batch_statistics.h"
#include "backends/plan/kernels/kernels.h"
#include "backends/plan/kernels/pair_pooling.h"
#include "backends/plan/kernels/pair_routes.h"

namespace rondo {

namespace {

// A batch norm, ReLU and the largest of each window of two by two: see
// recording/fused_operators.h. What is normalised is pooled in registers.

/// relu(x * scale + shift)
template <bool kWithNaN>
struct NormalisedRelu {
  static constexpr bool kMayBeNaN = kWithNaN;

  Normalisation n;

  RONDO_AVX2 RONDO_INLINE float operator()(float x) const {
    const float y = __builtin_fmaf(x, n.scale, n.shift);
    return y < 0.0F ? 0.0F : y;
  }

  RONDO_AVX2 RONDO_INLINE Lanes operator()(Lanes x) const {
    return larger(Lanes{}, fused(x, n.scale - Lanes{}, n.shift - Lanes{}));
  }
};

// GCC moves them one by one where it is told to convert all.
RONDO_AVX2 RONDO_INLINE void store_bytes(LaneInts values, uint8_t* to) {
#if defined(__x86_64__)
  const auto all = reinterpret_cast<__m256i>(values);
  const __m128i words =
      _mm_packs_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packus_epi16(words, words));
#else
  for (int64_t i = 0; i < kLanes; ++i) {
    to[i] = static_cast<uint8_t>(values[i]);
  }
#endif
}

/// Which element of its window, row by row.
struct Routes {
  using Stored = uint8_t;

  RONDO_AVX2 RONDO_INLINE int64_t at(int64_t, int64_t k) const { return k; }

  RONDO_AVX2 RONDO_INLINE LaneInts lanes_at(int64_t, int64_t k) const {
    return LaneInts{} + static_cast<int32_t>(k);
  }

  RONDO_AVX2 RONDO_INLINE void store(const Largest<float, int64_t>& largest, uint8_t* to) const {
    *to = static_cast<uint8_t>(largest.value <= 0.0F ? kNoRoute : largest.place);
  }

  RONDO_AVX2 RONDO_INLINE void store(const Largest<Lanes, LaneInts>& largest, uint8_t* to) const {
    const LaneInts route = largest.value <= 0.0F ? LaneInts{} + kNoRoute : largest.place;
    store_bytes(route, to);
  }
};

template <void (*kCollect)(const BatchStatistics&)>
class BatchNormReluPoolKernel final : public Kernel {
 public:
  BatchNormReluPoolKernel(const BatchNormOperands& norm,
                          PairedPlane plane,
                          Operand largest,
                          Operand routes)
      : norm_(norm), plane_(plane), largest_(largest), routes_(routes) {}

  void run() override {
    kCollect(norm_.statistics());
    at::parallel_for(0, norm_.shape.planes(), 1, [this](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) {
        pool(plane);
      }
    });
  }

 private:
  // An element that is not finite makes the statistics of its channel NaN.
  void pool(int64_t plane) const {
    const Normalisation n = norm_.normalisation(plane % norm_.shape.channels);
    if (std::isfinite(n.scale) && std::isfinite(n.shift)) {
      pool(plane, NormalisedRelu</*kWithNaN=*/false>{n});
    } else {
      pool(plane, NormalisedRelu</*kWithNaN=*/true>{n});
    }
  }

  template <class Read>
  void pool(int64_t plane, Read read) const {
    PairPooling(plane_, read, Routes())
        .pool(norm_.x.as<float>() + plane * plane_.size(),
              largest_.as<float>() + plane * plane_.windows(),
              routes_.as<uint8_t>() + plane * plane_.windows());
  }

  BatchNormOperands norm_;
  PairedPlane plane_;
  Operand largest_;
  Operand routes_;
};

// (x, weight, bias, running_mean, running_var, momentum, eps)
bool accepts(const StepProgram& program, const Instruction& instruction) {
  return widest_instruction_set() == InstructionSet::Avx2 &&
         are_plain_floats(program, instruction.arguments, {1, 2, 3, 4}) &&
         are_plain_floats(program, instruction.results, {2, 3}) &&
         fit_together(slot_at(program, instruction.arguments, 0),
                      slot_at(program, instruction.results, 0),
                      slot_at(program, instruction.results, 1));
}

template <class AnyKernel>
std::unique_ptr<Kernel> make(const StepProgram& program,
                             const Instruction& instruction,
                             const PlanMemory& memory) {
  const auto argument = [&](size_t i) { return memory.operand(id_at(instruction.arguments, i)); };
  const auto result = [&](size_t i) { return memory.operand(id_at(instruction.results, i)); };
  const Slot& x = *slot_at(program, instruction.arguments, 0);
  return std::make_unique<AnyKernel>(
      BatchNormOperands{image_shape(x),
                        static_cast<float>(instruction.arguments[5].constant.toDouble()),
                        instruction.arguments[6].constant.toDouble(),
                        argument(0),
                        argument(1),
                        argument(2),
                        argument(3),
                        argument(4),
                        result(2),
                        result(3)},
      plane_of(x),
      result(0),
      result(1));
}

}  // namespace

std::vector<OwnKernel> batch_norm_relu_pool_kernels() {
  constexpr int kUlps = 64;
  const char* const op = "rondo::batch_norm_relu_pool";
  return {{op, accepts, make<BatchNormReluPoolKernel<collect_in_lanes>>, kUlps},
          {op, accepts, make<BatchNormReluPoolKernel<collect>>}};
}

}  // namespace rondo
