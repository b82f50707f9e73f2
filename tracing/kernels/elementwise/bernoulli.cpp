#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>

#include "core/vector_loop.h"
#include "tracing/kernels/elementwise/mersenne_twister.h"
#include "tracing/kernels/kernels.h"
#include "tracing/program/arguments.h"

namespace rondo {

namespace {

// What LibTorch takes of the two words of a number: 53 bits, as many as a double has.
constexpr int kBits = 53;
constexpr uint32_t kHighMask = (uint32_t{1} << (kBits - 32)) - 1;

/// Ones with a probability, else zeros: the elements' own numbers of LibTorch's default generator.
/// On one thread: each number follows from those before.
/// Source: bernoulli_kernel, ATen/native/cpu/DistributionTemplates.h.
class BernoulliKernel final : public Kernel {
 public:
  // A number of 53 bits, as a part of 1, is below `p` when it is below this as a whole number.
  BernoulliKernel(Operand y, int64_t count, double p)
      : y_(y), count_(count), bound_(static_cast<uint64_t>(std::ceil(std::ldexp(p, kBits)))) {}

  void run() override {
    constexpr int64_t kAtOnce = 1024;
    std::array<uint32_t, 2 * kAtOnce> words;
    float* const y = y_.as<float>();
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    const std::lock_guard<std::mutex> lock(generator.mutex());
    MersenneTwister numbers(*generator.get<at::CPUGeneratorImpl>());
    for (int64_t first = 0; first < count_; first += kAtOnce) {
      const int64_t count = std::min(kAtOnce, count_ - first);
      numbers.draw(words.data(), 2 * count);
      compare(words.data(), y + first, count);
    }
    numbers.keep();
  }

 private:
  void compare(const uint32_t* words, float* y, int64_t count) const {
    const auto bound_high = static_cast<uint32_t>(bound_ >> 32);
    const auto bound_low = static_cast<uint32_t>(bound_);
    vector_loop(
        [=](int64_t i) RONDO_INLINE_LAMBDA {
          const uint32_t high = words[2 * i] & kHighMask;
          const uint32_t low = words[2 * i + 1];
          const bool is_below = (high < bound_high) | ((high == bound_high) & (low < bound_low));
          y[i] = is_below ? 1.0F : 0.0F;
        },
        count);
  }

  Operand y_;
  int64_t count_;
  uint64_t bound_;
};

bool accepts(const StepProgram& program, const Instruction& instruction) {
  const Argument& p = instruction.arguments[1];
  return is_plain_float(slot_at(program, instruction.arguments, 0)) &&
         p.kind == Argument::Kind::Constant && p.constant.isDouble() &&
         p.constant.toDouble() >= 0.0 && p.constant.toDouble() <= 1.0;
}

std::unique_ptr<Kernel> make(const StepProgram& program,
                             const Instruction& instruction,
                             const Operands& memory) {
  return std::make_unique<BernoulliKernel>(memory.operand(id_at(instruction.arguments, 0)),
                                           numel(*slot_at(program, instruction.arguments, 0)),
                                           instruction.arguments[1].constant.toDouble());
}

}  // namespace

std::vector<OwnKernel> bernoulli_kernels() {
  return {{"aten::bernoulli_.float", accepts, make}};
}

}  // namespace rondo
