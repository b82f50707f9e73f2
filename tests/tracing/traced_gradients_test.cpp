#include <doctest/doctest.h>
#include <torch/nn/functional.h>
#include <torch/types.h>

#include <string>
#include <vector>

#include "support/step_probe.h"

TEST_SUITE_BEGIN("tracing/traced_gradients");

using namespace rondo;
using namespace rondo::test;
namespace F = torch::nn::functional;

namespace {

// Gradients in memory that stays, written by the first batch of a group and added to by the others.
struct Accumulating {
  at::Tensor w = torch::randn({6, 3}).set_requires_grad(true);
  at::Tensor b = torch::randn({3}).set_requires_grad(true);
  at::Tensor lr = torch::full({}, 0.05, at::kDouble);
  at::Tensor kept_w = torch::zeros({6, 3});
  at::Tensor kept_b = torch::zeros({3});

  void backward(const Batch& batch, const GroupPosition& position) const {
    if (position.is_first) {
      w.mutable_grad().reset();
      b.mutable_grad().reset();
    } else {
      w.mutable_grad() = kept_w;
      b.mutable_grad() = kept_b;
    }
    const at::Tensor loss = F::cross_entropy(torch::addmm(b, batch["x"], w), batch["label"]);
    (loss / position.size).backward();
  }

  void keep_or_update(const GroupPosition& position) const {
    if (position.is_last) {
      descend({w, b}, lr);
    } else if (position.is_first) {
      kept_w.copy_(w.grad());
      kept_b.copy_(b.grad());
    }
  }
};

GroupPosition phase_of(int step) {
  return {step % 3 == 0, step % 3 == 2, 3};
}

StepProbe accumulating() {
  const Accumulating parts;
  auto step = std::make_shared<int>(0);
  StepProbe probe;
  probe.state = {{"w", parts.w},
                 {"b", parts.b},
                 {"lr", parts.lr},
                 {"kept w", parts.kept_w},
                 {"kept b", parts.kept_b}};
  probe.key = [step](int index) {
    *step = index;
    return StepKey{"train", phase_of(index), "fp32"};
  };
  probe.body = [=](Backend&, const Batch& batch) {
    parts.backward(batch, phase_of(*step));
    parts.keep_or_update(phase_of(*step));
    return Outputs();
  };
  return probe;
}

}  // namespace

TEST_CASE("groups of accumulated batches replay, one key a position") {
  // First, middle and last of a group: three keys, two captures each.
  CHECK(traced_against_eager(&accumulating, 15, 6) == "");
}

TEST_CASE("gradients that are zeroed rather than dropped are state like any other") {
  CHECK(traced_against_eager([] {
          const at::Tensor w = torch::randn({6, 3}).set_requires_grad(true);
          w.mutable_grad() = torch::zeros({6, 3});
          const at::Tensor lr = torch::full({}, 0.05, at::kDouble);
          StepProbe probe;
          probe.state = {{"w", w}, {"w.grad", w.grad()}, {"lr", lr}};
          probe.body = [=](Backend&, const Batch& batch) {
            w.mutable_grad().zero_();
            batch["x"].mm(w).square().mean().backward();
            batch["x"].mm(w).sin().mean().backward();
            descend({w}, lr);
            return Outputs{{"grad", w.grad()}};
          };
          return probe;
        }) == "");
}

TEST_CASE("two backwards into fresh gradients replay") {
  CHECK(traced_against_eager([] {
          return descent([](const auto& x, const auto& label, const auto& w, const auto& b) {
            F::cross_entropy(torch::addmm(b, x, w), label).backward();
            return torch::addmm(b, x, w).square().mean();
          });
        }) == "");
}

TEST_CASE("gradients left over from outside of the step are an error") {
  const std::string message = capture_error([] {
    const at::Tensor w = torch::randn({6, 3}).set_requires_grad(true);
    w.mutable_grad() = torch::zeros({6, 3});
    StepProbe probe;
    probe.state = {{"w", w}};
    probe.body = [=](Backend&, const Batch& batch) {
      batch["x"].mm(w).square().mean().backward();
      return Outputs();
    };
    return probe;
  });
  CHECK(message.find("[6, 3]") != std::string::npos);
}

TEST_CASE("a gradient handed to the host is that of the step that ran") {
  CHECK(traced_against_eager([] {
          StepProbe probe =
              descent([](const auto& x, const auto& label, const auto& w, const auto& b) {
                return F::cross_entropy(torch::addmm(b, x, w), label);
              });
          const at::Tensor w = probe.state[0].second;
          const auto body = probe.body;
          probe.body = [=](Backend& backend, const Batch& batch) {
            Outputs outputs = body(backend, batch);
            outputs.set("grad", w.grad());
            return outputs;
          };
          return probe;
        }) == "");
}

TEST_SUITE_END();
