#include "tracing/plan/guard_kernels.h"

#include <algorithm>

#include "tracing/plan/operator_kernels.h"
#include "tracing/program/guards.h"

namespace rondo {

namespace {

bool is_same(const c10::IValue& value, const c10::IValue& expected) {
  if (value.isInt() && expected.isInt()) {
    return value.toInt() == expected.toInt();
  }
  if (value.isBool() && expected.isBool()) {
    return value.toBool() == expected.toBool();
  }
  return to_text(value) == to_text(expected);
}

bool has_same_sizes(const at::Tensor& returned, const at::Tensor& planned) {
  return returned.defined() == planned.defined() &&
         (!planned.defined() || returned.sizes() == planned.sizes());
}

class CompareAnswer final : public Kernel {
 public:
  CompareAnswer(const Instruction& guard, const PlanMemory& memory)
      : call_(guard.op, guard, memory) {
    for (const Result& result : guard.results) {
      expected_.push_back(result.constant);
    }
  }

  void run() override {
    const torch::jit::Stack& returned = call_.run();
    if (!std::equal(
            returned.begin(), returned.end(), expected_.begin(), expected_.end(), &is_same)) {
      throw GuardFailed{answer_in(returned)};
    }
  }

 private:
  BoxedCall call_;
  std::vector<c10::IValue> expected_;
};

}  // namespace

std::unique_ptr<Kernel> compare_answer(const Instruction& guard, const PlanMemory& memory) {
  return std::make_unique<CompareAnswer>(guard, memory);
}

std::unique_ptr<Kernel> compare_sizes_and_adopt(const Instruction& guard,
                                                const std::vector<SlotId>& slots,
                                                PlanMemory& memory) {
  const auto require_sizes = [](const std::vector<at::Tensor>& returned,
                                const std::vector<at::Tensor>& planned) {
    if (!std::equal(
            returned.begin(), returned.end(), planned.begin(), planned.end(), &has_same_sizes)) {
      throw GuardFailed{answer_in(torch::jit::Stack(returned.begin(), returned.end()))};
    }
  };
  return call_and_adopt(guard, slots, memory, require_sizes);
}

}  // namespace rondo
