// Compiled with -ffp-contract=off (tracing/CMakeLists.txt), see core/vector_loop.h.

#include "tracing/kernels/images/batch_norm_relu_pool.h"
#include "tracing/kernels/kernels.h"
#include "tracing/kernels/norms/block_normalisation.h"
#include "tracing/program/arguments.h"

namespace rondo {

namespace {

// See batch_norm_relu_pool.cpp: the same of images whose channels lie side by side in blocks. The
// lanes of a vector are channels, so that windows are compared without turning anything.

/// \tparam kBundles  vectors that a block takes
template <int64_t kBundles>
class BatchNormReluPoolBlocksKernel final : public Kernel {
 public:
  BatchNormReluPoolBlocksKernel(const BatchNormReluPoolOperands& operands, PairedPlane plane)
      : norm_(operands.norm), largest_(operands.largest), routes_(operands.routes), plane_(plane) {}

  void run() override {
    normalise_blocks<kBundles>(norm_, [this](int64_t plane) { pool(plane); });
  }

 private:
  static constexpr int64_t kBlock = kBundles * kLanes;

  RONDO_AVX2 void pool(int64_t plane) const {
    const BlockNormalisation<kBundles> of(norm_, plane);
    of.is_finite ? pool</*kWithNaN=*/false>(plane, of) : pool</*kWithNaN=*/true>(plane, of);
  }

  template <bool kWithNaN>
  RONDO_AVX2 void pool(int64_t plane, const BlockNormalisation<kBundles>& of) const {
    NormalisedRelu<kWithNaN, Lanes> read[kBundles];
    for (int64_t b = 0; b < kBundles; ++b) {
      read[b] = {of.scales[b], of.shifts[b]};
    }
    const float* const x = norm_.x.as<float>() + plane * plane_.size() * kBlock;
    float* largest = largest_.as<float>() + plane * plane_.windows() * kBlock;
    uint8_t* routes = routes_.as<uint8_t>() + plane * plane_.windows() * kBlock;
    for (int64_t i = 0; i < plane_.out_height(); ++i) {
      const float* corner = x + 2 * i * plane_.width * kBlock;
      for (int64_t j = 0; j < plane_.out_width(); ++j) {
        for (int64_t b = 0; b < kBundles; ++b) {
          pool_window(read[b], corner + b * kLanes, largest + b * kLanes, routes + b * kLanes);
        }
        corner += 2 * kBlock;
        largest += kBlock;
        routes += kBlock;
      }
    }
  }

  template <class Read>
  RONDO_AVX2 RONDO_INLINE void pool_window(const Read& read,
                                           const float* corner,
                                           float* largest,
                                           uint8_t* routes) const {
    const float* const below = corner + plane_.width * kBlock;
    Largest<Lanes, LaneInts> found = {read(load(corner)), LaneInts{}};
    offer<Read>(found, read(load(corner + kBlock)), 1);
    offer<Read>(found, read(load(below)), 2);
    offer<Read>(found, read(load(below + kBlock)), 3);
    std::memcpy(largest, &found.value, sizeof found.value);
    store_routes(found.value <= 0.0F ? LaneInts{} + kNoRoute : found.place, routes);
  }

  template <class Read>
  static RONDO_AVX2 RONDO_INLINE void offer(Largest<Lanes, LaneInts>& found,
                                            Lanes value,
                                            int32_t place) {
    if constexpr (Read::kMayBeNaN) {
      found.offer(value, LaneInts{} + place);
    } else {
      offer_number(found, value, LaneInts{} + place);
    }
  }

  BatchNormOperands norm_;
  Operand largest_;
  Operand routes_;
  PairedPlane plane_;
};

template <int64_t kBundles>
bool accepts(const StepProgram& program, const Instruction& instruction) {
  return is_batch_norm_relu_pool(program, instruction) &&
         block_of(*slot_at(program, instruction.arguments, 0)) == kBundles * kLanes;
}

template <int64_t kBundles>
std::unique_ptr<Kernel> make(const StepProgram& program,
                             const Instruction& instruction,
                             const Operands& memory) {
  return std::make_unique<BatchNormReluPoolBlocksKernel<kBundles>>(
      batch_norm_relu_pool_operands(program, instruction, memory),
      plane_of(*slot_at(program, instruction.arguments, 0)));
}

}  // namespace

std::vector<OwnKernel> batch_norm_relu_pool_blocks_kernels() {
  const char* const op = "rondo::batch_norm_relu_pool";
  return {{op, accepts<1>, make<1>}, {op, accepts<2>, make<2>}};
}

}  // namespace rondo
