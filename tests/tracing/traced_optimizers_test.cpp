#include <doctest/doctest.h>
#include <torch/nn/functional.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <memory>
#include <string>

#include "optim/optimizer.h"
#include "support/every_optimizer.h"
#include "support/sign_sgd.h"
#include "support/step_probe.h"

TEST_SUITE_BEGIN("tracing/traced_optimizers");

using namespace rondo;
using namespace rondo::test;
namespace F = torch::nn::functional;

namespace {

GroupPosition phase_of(int step, int64_t size) {
  return {step % size == 0, step % size == size - 1, size};
}

// A training step as the loop writes it, with groups of `size` batches.
StepProbe training(std::shared_ptr<Optimizer> optimizer, int64_t size) {
  auto net = torch::nn::Sequential(
      torch::nn::Linear(6, 8), torch::nn::Tanh(), torch::nn::Dropout(0.2), torch::nn::Linear(8, 3));
  NamedTensors parameters;
  for (const auto& parameter : net->named_parameters()) {
    parameters.emplace_back(parameter.key(), parameter.value());
  }
  optimizer->attach(parameters);
  auto position = std::make_shared<GroupPosition>();
  StepProbe probe;
  probe.more_state = [=] { return optimizer->captured_state(); };
  probe.key = [=](int step) {
    *position = phase_of(step, size);
    optimizer->bind_grads(!position->is_first);
    return StepKey{"train", *position, "fp32"};
  };
  probe.body = [=](Backend& backend, const Batch& batch) mutable {
    if (position->is_first) {
      optimizer->zero_grad();
    }
    const at::Tensor loss = F::cross_entropy(net->forward(batch["x"]), batch["label"]);
    (loss / position->size).backward();
    if (position->is_last) {
      const at::Tensor lr = optimizer->groups()[0]["lr"];
      backend.host_call("schedule", {lr}, [](const auto& tensors) { tensors[0].mul_(0.97); });
      optimizer->step();
    } else {
      optimizer->keep_grads();
    }
    return Outputs{{"loss", loss}};
  };
  return probe;
}

void check_every_optimizer(int64_t group, int steps, int captures) {
  for (const RegisteredOptimizer& one : every_optimizer()) {
    CAPTURE(one.name);
    CAPTURE(one.keys);
    const auto make = [&] {
      return training(std::shared_ptr<Optimizer>(one.factory.make()), group);
    };
    CHECK(traced_against_eager(make, steps, captures) == "");
  }
}

}  // namespace

TEST_CASE("a whole training step with any of rondo's optimizers replays bit for bit") {
  check_every_optimizer(1, 12, 2);
}

TEST_CASE("so does a user's own optimizer, in plain tensor work") {
  const auto make = [] {
    return training(std::make_shared<SignSgd>(SignSgd::Options{0.01, {}}), 3);
  };
  CHECK(traced_against_eager(make, 18, 6) == "");
}

TEST_CASE(
    "so do groups of accumulated batches, though the first one makes the memory of gradients") {
  check_every_optimizer(3, 18, 6);
}

TEST_SUITE_END();
