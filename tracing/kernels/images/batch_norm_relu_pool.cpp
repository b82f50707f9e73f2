// Compiled with -ffp-contract=off (tracing/CMakeLists.txt), see core/vector_loop.h.

#include "tracing/kernels/images/batch_norm_relu_pool.h"

#include "core/parallel.h"
#include "tracing/kernels/kernels.h"
#include "tracing/program/arguments.h"

namespace rondo {

namespace {

// A batch norm, ReLU and the largest of each window of two by two: see
// operators/fused_operators.h. What is normalised is pooled in registers.

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
    store_routes(route, to);
  }
};

template <void (*kCollect)(const BatchStatistics&)>
class BatchNormReluPoolKernel final : public Kernel {
 public:
  BatchNormReluPoolKernel(const BatchNormReluPoolOperands& operands, PairedPlane plane)
      : norm_(operands.norm), largest_(operands.largest), routes_(operands.routes), plane_(plane) {}

  void run() override {
    kCollect(norm_.statistics());
    parallel_for_each(
        norm_.shape.planes(), norm_.shape.image, [this](int64_t plane) { pool(plane); });
  }

 private:
  void pool(int64_t plane) const {
    const Normalisation n = norm_.normalisation(plane % norm_.shape.channels);
    if (n.is_finite()) {
      pool(plane, NormalisedRelu</*kWithNaN=*/false, float>{n.scale, n.shift});
    } else {
      pool(plane, NormalisedRelu</*kWithNaN=*/true, float>{n.scale, n.shift});
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
  Operand largest_;
  Operand routes_;
  PairedPlane plane_;
};

bool accepts(const StepProgram& program, const Instruction& instruction) {
  return is_batch_norm_relu_pool(program, instruction) &&
         block_of(*slot_at(program, instruction.arguments, 0)) == 0;
}

template <class AnyKernel>
std::unique_ptr<Kernel> make(const StepProgram& program,
                             const Instruction& instruction,
                             const Operands& memory) {
  return std::make_unique<AnyKernel>(batch_norm_relu_pool_operands(program, instruction, memory),
                                     plane_of(*slot_at(program, instruction.arguments, 0)));
}

}  // namespace

bool is_batch_norm_relu_pool(const StepProgram& program, const Instruction& instruction) {
  const Slot* const x = slot_at(program, instruction.arguments, 0);
  if (widest_instruction_set() != InstructionSet::Avx2 ||
      !fit_together(
          x, slot_at(program, instruction.results, 0), slot_at(program, instruction.results, 1))) {
    return false;
  }
  const int64_t channels = image_sizes(*x).channels;
  return have_floats(program, instruction.arguments, {1, 2, 3, 4}, channels) &&
         have_floats(program, instruction.results, {2, 3}, channels);
}

BatchNormReluPoolOperands batch_norm_relu_pool_operands(const StepProgram& program,
                                                        const Instruction& instruction,
                                                        const Operands& memory) {
  const auto argument = [&](size_t i) { return memory.operand(id_at(instruction.arguments, i)); };
  const auto result = [&](size_t i) { return memory.operand(id_at(instruction.results, i)); };
  return {{shape_of(image_sizes(*slot_at(program, instruction.arguments, 0))),
           static_cast<float>(instruction.arguments[5].constant.toDouble()),
           instruction.arguments[6].constant.toDouble(),
           argument(0),
           argument(1),
           argument(2),
           argument(3),
           argument(4),
           result(2),
           result(3)},
          result(0),
          result(1)};
}

std::vector<OwnKernel> batch_norm_relu_pool_kernels() {
  constexpr int kUlps = 64;
  const char* const op = "rondo::batch_norm_relu_pool";
  return {{op, accepts, make<BatchNormReluPoolKernel<collect_in_lanes>>, kUlps},
          {op, accepts, make<BatchNormReluPoolKernel<collect>>}};
}

}  // namespace rondo
