#include "tracing/plan/probe.h"

#include <doctest/doctest.h>

#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>

#include "tracing/find_instruction.h"
#include "tracing/plan/out_variant.h"
#include "tracing/plan/takes_all.h"
#include "tracing/recording/capture.h"

TEST_SUITE_BEGIN("tracing/plan/probe");

using namespace rondo;
using namespace rondo::test;

namespace {

StepProgram capture(const StepBody& body, const Batch& batch) {
  const IsDue is_due;
  ClosureQueue queue;
  const std::function<CapturedState()> state = [] { return CapturedState(); };
  BodyRequests* requests = nullptr;
  return capture_step("test", {batch, body, is_due, queue, state, requests}).program;
}

/// Sums 8 numbers, from the front or from the back.
template <bool kBackwards>
std::unique_ptr<Kernel> make_sum(const StepProgram&,
                                 const Instruction& instruction,
                                 const Operands& memory) {
  struct Sum final : Kernel {
    Operand from;
    Operand to;

    void run() override {
      float sum = 0.0F;
      for (int i = 0; i < 8; ++i) {
        sum += from.as<float>()[kBackwards ? 7 - i : i];
      }
      *to.as<float>() = sum;
    }
  };

  auto sum = std::make_unique<Sum>();
  sum->from = memory.operand(instruction.arguments[0].slots[0]);
  sum->to = memory.operand(instruction.results[0].slots[0]);
  return sum;
}

/// Writes its argument, or forgets to.
template <bool kForgets>
std::unique_ptr<Kernel> make_negation(const StepProgram&,
                                      const Instruction& instruction,
                                      const Operands& memory) {
  struct Negation final : Kernel {
    Operand numbers;

    void run() override {
      for (int i = 0; i < (kForgets ? 7 : 8); ++i) {
        numbers.as<float>()[i] = -numbers.as<float>()[i];
      }
    }
  };

  auto negation = std::make_unique<Negation>();
  negation->numbers = memory.operand(instruction.arguments[0].slots[0]);
  return negation;
}

/// Writes ones, without drawing the numbers that tell where.
std::unique_ptr<Kernel> make_ones(const StepProgram&,
                                  const Instruction& instruction,
                                  const Operands& memory) {
  struct Ones final : Kernel {
    Operand numbers;

    void run() override { std::fill_n(numbers.as<float>(), 8, 1.0F); }
  };

  auto ones = std::make_unique<Ones>();
  ones->numbers = memory.operand(instruction.arguments[0].slots[0]);
  return ones;
}

/// Sums up as LibTorch does, and counts how often.
int sums_made = 0;

std::unique_ptr<Kernel> make_counted_sum(const StepProgram& program,
                                         const Instruction& instruction,
                                         const Operands& memory) {
  struct Sum final : Kernel {
    Operand from;
    Operand to;
    int64_t count = 0;

    void run() override {
      ++sums_made;
      *to.as<float>() = torch::from_blob(from.as<float>(), {count}).sum().item<float>();
    }
  };

  auto sum = std::make_unique<Sum>();
  const SlotId from = instruction.arguments[0].slots[0];
  sum->from = memory.operand(from);
  sum->to = memory.operand(instruction.results[0].slots[0]);
  sum->count = program.slots[static_cast<size_t>(from)].sizes[0];
  return sum;
}

int rounds_of_sum(int64_t count) {
  const StepProgram program = capture(
      [](const Batch& batch) {
        return Outputs{{"y", batch["x"].sum()}};
      },
      {{"x", torch::zeros({count})}});
  sums_made = 0;
  CHECK(probe({"aten::sum", takes_all, make_counted_sum}, program, find(program, "aten::sum")) ==
        ProbeOutcome::Agrees);
  return sums_made;
}

}  // namespace

TEST_CASE("a long sum is probed in few rounds, a short one in many") {
  CHECK(rounds_of_sum(8) == 256);
  CHECK(rounds_of_sum(1 << 20) == 8);
}

TEST_CASE("another order of summation is found out, whatever the batch holds") {
  // LibTorch adds a column from the front.
  const StepProgram program = capture(
      [](const Batch& batch) {
        return Outputs{{"y", batch["x"].sum(0, true)}};
      },
      {{"x", torch::zeros({8, 1})}});
  const Instruction& sum = find(program, "aten::sum.dim_IntList");
  const auto agrees = [&](auto make) {
    return probe({"aten::sum.dim_IntList", takes_all, make}, program, sum) == ProbeOutcome::Agrees;
  };
  const bool front = agrees(make_sum<false>);
  const bool back = agrees(make_sum<true>);
  CHECK_FALSE((front && back));
}

TEST_CASE("a kernel that writes its argument must write all of it, and does not touch the run's") {
  const at::Tensor x = torch::ones({8});
  const StepProgram program = capture(
      [](const Batch& batch) {
        at::Tensor copy = batch["x"].clone();
        copy.neg_();
        return Outputs{{"y", copy}};
      },
      {{"x", x}});
  const Instruction& negation = find(program, "aten::neg_");
  const auto outcome = [&](auto make) {
    return probe({"aten::neg_", takes_all, make}, program, negation);
  };
  CHECK(outcome(make_negation<false>) == ProbeOutcome::Agrees);
  CHECK(outcome(make_negation<true>) == ProbeOutcome::Differs);
  CHECK(x.equal(torch::ones({8})));
}

TEST_CASE("a kernel that draws less random numbers than its operator is found out") {
  const StepProgram program = capture(
      [](const Batch& batch) {
        return Outputs{{"y", batch["x"].clone().bernoulli_(1.0)}};
      },
      {{"x", torch::zeros({8})}});
  const Instruction& mask = find(program, "aten::bernoulli_.float");
  CHECK(probe({"aten::bernoulli_.float", takes_all, make_ones}, program, mask) ==
        ProbeOutcome::Differs);
}

TEST_CASE("what takes no random numbers, or too many, is left to the trials") {
  const StepProgram program = capture(
      [](const Batch& batch) {
        return Outputs{{"y", torch::binary_cross_entropy(batch["x"], batch["x"])},
                       {"z", batch["z"].neg()}};
      },
      {{"x", torch::full({100}, 0.5)}, {"z", torch::zeros({1 << 24})}});
  const auto outcome = [&](const char* name) {
    const Instruction& instruction = find(program, name);
    const auto out = find_out_variant(instruction.op);
    REQUIRE(out);
    return probe(*out, program, instruction);
  };
  CHECK(outcome("aten::binary_cross_entropy") == ProbeOutcome::Unknown);  // outside of [0, 1]
  CHECK(outcome("aten::neg") == ProbeOutcome::Unknown);
}

TEST_CASE("the global generator is left alone") {
  const StepProgram program = capture(
      [](const Batch& batch) {
        return Outputs{{"y", batch["x"].clone().bernoulli_(0.5)}};
      },
      {{"x", torch::zeros({8})}});
  torch::manual_seed(3);
  const at::Tensor expected = torch::rand({4});
  torch::manual_seed(3);
  const Instruction& mask = find(program, "aten::bernoulli_.float");
  CHECK(find_own_kernel(program, mask) != nullptr);
  CHECK(torch::rand({4}).equal(expected));
}

TEST_SUITE_END();
