#include <algorithm>
#include <utility>

#include "tracing/kernels/kernels.h"
#include "tracing/program/arguments.h"

namespace rondo {

namespace {

// Operators on tensors of one number, which cost LibTorch thousands of times their work: the
// batches that a batch norm counts, and the norms of all gradients, put side by side.

class CounterKernel final : public Kernel {
 public:
  CounterKernel(Operand counter, int64_t step) : counter_(counter), step_(step) {}

  void run() override { *counter_.as<int64_t>() += step_; }

 private:
  Operand counter_;
  int64_t step_;
};

// (counter, other, alpha)
bool accepts_counter(const StepProgram& program, const Instruction& instruction) {
  const Slot* const counter = slot_at(program, instruction.arguments, 0);
  return counter != nullptr && counter->dtype == at::kLong && counter->sizes.empty() &&
         is_integer(instruction.arguments[1]) && is_integer(instruction.arguments[2]);
}

std::unique_ptr<Kernel> make_counter(const StepProgram&,
                                     const Instruction& instruction,
                                     const Operands& memory) {
  return std::make_unique<CounterKernel>(
      memory.operand(id_at(instruction.arguments, 0)),
      instruction.arguments[1].constant.toInt() * instruction.arguments[2].constant.toInt());
}

class StackKernel final : public Kernel {
 public:
  StackKernel(std::vector<Operand> numbers, Operand all)
      : numbers_(std::move(numbers)), all_(all) {}

  void run() override {
    float* to = all_.as<float>();
    for (const Operand& number : numbers_) {
      *to++ = *number.as<float>();
    }
  }

 private:
  std::vector<Operand> numbers_;
  Operand all_;
};

// (tensors, dim)
bool accepts_stack(const StepProgram& program, const Instruction& instruction) {
  const std::vector<SlotId>& numbers = instruction.arguments[0].slots;
  return are_plain_floats(program, instruction.results, {0}) &&
         numel(*slot_at(program, instruction.results, 0)) == static_cast<int64_t>(numbers.size()) &&
         std::all_of(numbers.begin(), numbers.end(), [&](SlotId id) {
           return id != kNoTensor && program.slots[static_cast<size_t>(id)].sizes.empty() &&
                  program.slots[static_cast<size_t>(id)].dtype == at::kFloat;
         });
}

std::unique_ptr<Kernel> make_stack(const StepProgram&,
                                   const Instruction& instruction,
                                   const Operands& memory) {
  std::vector<Operand> numbers;
  for (const SlotId id : instruction.arguments[0].slots) {
    numbers.push_back(memory.operand(id));
  }
  return std::make_unique<StackKernel>(std::move(numbers),
                                       memory.operand(id_at(instruction.results, 0)));
}

}  // namespace

std::vector<OwnKernel> single_number_kernels() {
  return {{"aten::add_.Scalar", accepts_counter, make_counter},
          {"aten::stack", accepts_stack, make_stack}};
}

}  // namespace rondo
