// Compiled with -ffp-contract=off (tracing/CMakeLists.txt), see core/vector_loop.h.

#include <cmath>

#include "tracing/kernels/kernels.h"
#include "tracing/kernels/lanes.h"
#include "tracing/program/arguments.h"

namespace rondo {

namespace {

// The root of the sum of all squares, as clipping asks for it. LibTorch adds them in eight lanes,
// then the lanes, then what fills no vector: by some compilers four squares at a time, which are
// rounded then.
// Source: norm_kernel_tensor_iterator_impl, ATen/native/cpu/ReduceOpsKernel.cpp.

template <ProductSum kSum, bool kHasFours>
RONDO_AVX2 float norm_of(const float* x, int64_t count) {
  Lanes lanes = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const Lanes next = load(x + i);
    lanes = add_product<kSum>(next, next, lanes);
  }
  float sum = lanes[0];
  for (int64_t lane = 1; lane < kLanes; ++lane) {
    sum += lanes[lane];
  }
  const int64_t rounded = kHasFours ? i + (count - i) / 4 * 4 : i;
  for (; i < rounded; ++i) {
    sum = add_product<ProductSum::Rounded>(x[i], x[i], sum);
  }
  for (; i < count; ++i) {
    sum = add_product<kSum>(x[i], x[i], sum);
  }
  return std::sqrt(sum);
}

template <ProductSum kSum, bool kHasFours>
class NormKernel final : public Kernel {
 public:
  NormKernel(Operand x, int64_t count, Operand norm) : x_(x), count_(count), norm_(norm) {}

  void run() override { *norm_.as<float>() = norm_of<kSum, kHasFours>(x_.as<float>(), count_); }

 private:
  Operand x_;
  int64_t count_;
  Operand norm_;
};

// (x, p)
bool accepts(const StepProgram& program, const Instruction& instruction) {
  return widest_instruction_set() == InstructionSet::Avx2 &&
         are_plain_floats(program, instruction.arguments, {0}) &&
         are_plain_floats(program, instruction.results, {0}) &&
         is_constant(instruction.arguments[1], 2.0) &&
         numel(*slot_at(program, instruction.results, 0)) == 1;
}

template <ProductSum kSum, bool kHasFours>
std::unique_ptr<Kernel> make(const StepProgram& program,
                             const Instruction& instruction,
                             const Operands& memory) {
  return std::make_unique<NormKernel<kSum, kHasFours>>(
      memory.operand(id_at(instruction.arguments, 0)),
      numel(*slot_at(program, instruction.arguments, 0)),
      memory.operand(id_at(instruction.results, 0)));
}

}  // namespace

std::vector<OwnKernel> norm_kernels() {
  const char* const op = "aten::norm.Scalar";
  return {{op, accepts, make<ProductSum::Fused, /*kHasFours=*/true>},
          {op, accepts, make<ProductSum::Fused, /*kHasFours=*/false>},
          {op, accepts, make<ProductSum::Rounded, /*kHasFours=*/false>}};
}

}  // namespace rondo
