#pragma once

#include <doctest/doctest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <functional>
#include <tuple>
#include <vector>

#include "core/state_dict.h"
#include "support/step_probe.h"
#include "tracing/interpreter/jit_executor.h"
#include "tracing/recording/capture.h"

namespace rondo::test {

using Steps = std::function<at::Tensor(const at::Tensor& x, const at::Tensor& state)>;

/// What a body of tensor operators records, with `state` [6] as captured state.
struct CapturedSteps {
  at::Tensor state = torch::arange(6, at::kFloat);
  ClosureQueue queue;
  BodyRequests* requests = nullptr;
  StepProgram program;

  explicit CapturedSteps(const Steps& steps,
                         const std::function<void(BodyRequests&, at::Tensor)>& after = {}) {
    const StepBody body = [&](const Batch& batch) {
      const at::Tensor y = steps(batch["x"], state);
      if (after) {
        after(*requests, y);
      }
      return Outputs{{"y", y}};
    };
    const std::function<CapturedState()> provide = [&] { return CapturedState{{"state", state}}; };
    const Batch batch = random_batch(0);
    const IsDue always;
    program = capture_step("test", {batch, body, always, queue, provide, requests}).program;
  }

  /// The same bytes before and after a pass, from the same state.
  void check_same(const StepProgram& passed) {
    const at::Tensor before = state.clone();
    const auto run = [&](const StepProgram& p) {
      state.copy_(before);
      torch::manual_seed(5);
      std::vector<at::Tensor> results = JitExecutor(p).run(random_batch(1), kAlwaysDue);
      results.push_back(state.clone());
      results.push_back(torch::rand({2}));
      return results;
    };
    const auto expected = run(program);
    const auto got = run(passed);
    REQUIRE(expected.size() == got.size());
    for (size_t i = 0; i < got.size(); ++i) {
      CHECK(equal_bytes(expected[i], got[i]));
    }
  }
};

/// In training: it moves `mean` and `var`.
inline at::Tensor training_batch_norm(const at::Tensor& x,
                                      const at::Tensor& mean,
                                      const at::Tensor& var) {
  return std::get<0>(at::native_batch_norm(x, {}, {}, mean, var, true, 0.1, 1e-5));
}

}  // namespace rondo::test
