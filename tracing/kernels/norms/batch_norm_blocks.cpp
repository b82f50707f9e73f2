// Compiled with -ffp-contract=off (tracing/CMakeLists.txt), see core/vector_loop.h.

#include "tracing/kernels/kernels.h"
#include "tracing/kernels/norms/batch_norm.h"
#include "tracing/kernels/norms/batch_norm_gradient_blocks.h"
#include "tracing/kernels/norms/block_normalisation.h"
#include "tracing/program/arguments.h"

namespace rondo {

namespace {

// See batch_norm.cpp and batch_norm_backward.cpp: the same of images whose channels lie side by
// side in blocks.

/// \tparam kBundles  vectors that a block takes
template <int64_t kBundles>
class BatchNormBlocksKernel final : public Kernel {
 public:
  BatchNormBlocksKernel(const BatchNormOperands& norm, Operand y) : norm_(norm), y_(y) {}

  void run() override {
    normalise_blocks<kBundles>(norm_, [this](int64_t plane) { normalise(plane); });
  }

 private:
  static constexpr int64_t kBlock = kBundles * kLanes;

  RONDO_AVX2 void normalise(int64_t plane) const {
    const BlockNormalisation<kBundles> of(norm_, plane);
    const float* x = norm_.x.as<float>() + plane * norm_.shape.image * kBlock;
    float* y = y_.as<float>() + plane * norm_.shape.image * kBlock;
    for (int64_t i = 0; i < norm_.shape.image; ++i, x += kBlock, y += kBlock) {
      for (int64_t b = 0; b < kBundles; ++b) {
        const Lanes normal = fused(load(x + b * kLanes), of.scales[b], of.shifts[b]);
        std::memcpy(y + b * kLanes, &normal, sizeof normal);
      }
    }
  }

  BatchNormOperands norm_;
  Operand y_;
};

/// A gradient that lies in memory as the image does.
template <int64_t kBundles>
class WrittenGradient {
 public:
  WrittenGradient(Operand dy, int64_t pixels) : dy_(dy), pixels_(pixels) {}

  int64_t rows() const { return 1; }

  int64_t width() const { return pixels_; }

  template <class Treat>
  RONDO_AVX2 RONDO_INLINE void each_element(int64_t plane, int64_t, Treat treat) const {
    const float* dy = dy_.as<float>() + plane * pixels_ * kBundles * kLanes;
    for (int64_t i = 0; i < pixels_; ++i) {
      for (int64_t b = 0; b < kBundles; ++b, dy += kLanes) {
        treat(i, b, load(dy));
      }
    }
  }

 private:
  Operand dy_;
  int64_t pixels_;
};

template <int64_t kBundles>
bool accepts(const StepProgram& program, const Instruction& instruction) {
  const Slot* const x = slot_at(program, instruction.arguments, 0);
  return widest_instruction_set() == InstructionSet::Avx2 && x != nullptr &&
         block_of(*x) == kBundles * kLanes &&
         is_batch_norm(program, instruction, &channels_of_image);
}

template <int64_t kBundles>
std::unique_ptr<Kernel> make(const StepProgram& program,
                             const Instruction& instruction,
                             const Operands& memory) {
  const ImageShape shape = shape_of(image_sizes(*slot_at(program, instruction.arguments, 0)));
  return std::make_unique<BatchNormBlocksKernel<kBundles>>(
      batch_norm_operands(shape, instruction, memory),
      memory.operand(id_at(instruction.results, 0)));
}

template <int64_t kBundles>
bool accepts_backward(const StepProgram& program, const Instruction& instruction) {
  const Slot* const x = slot_at(program, instruction.arguments, 1);
  return x != nullptr && block_of(*x) == kBundles * kLanes && image_sizes(*x).pixels() >= kLanes &&
         is_batch_norm_backward(program, instruction, &channels_of_image);
}

template <ProductSum kSum, int64_t kBundles>
std::unique_ptr<Kernel> make_backward(const StepProgram& program,
                                      const Instruction& instruction,
                                      const Operands& memory) {
  using Source = WrittenGradient<kBundles>;
  const ImageShape shape = shape_of(image_sizes(*slot_at(program, instruction.arguments, 1)));
  return std::make_unique<BatchNormGradientBlocksKernel<Source, kSum, kBundles>>(
      batch_norm_gradient_operands(instruction, memory),
      shape,
      Source(memory.operand(id_at(instruction.arguments, 0)), shape.image));
}

template <ProductSum kSum, int64_t kBundles>
OwnKernel backward() {
  return {"rondo::batch_norm_backward", accepts_backward<kBundles>, make_backward<kSum, kBundles>};
}

}  // namespace

std::vector<OwnKernel> batch_norm_blocks_kernels() {
  return {{"rondo::batch_norm", accepts<1>, make<1>},
          {"rondo::batch_norm", accepts<2>, make<2>},
          backward<ProductSum::Fused, 1>(),
          backward<ProductSum::Fused, 2>(),
          backward<ProductSum::Rounded, 1>(),
          backward<ProductSum::Rounded, 2>()};
}

}  // namespace rondo
