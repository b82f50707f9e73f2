#pragma once

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "backends/generator_state.h"
#include "backends/numeric_environment.h"
#include "core/state_dict.h"
#include "tracing/instruction_count.h"
#include "tracing/interpreter/jit_executor.h"
#include "tracing/plan/planned_executor.h"
#include "tracing/recording/dispatcher.h"
#include "tracing/recording/recorder.h"

namespace rondo::test {

// What tests of rondo's own kernels share: steps of a few operators, run as a plan and as recorded.

using Body = std::function<std::vector<at::Tensor>(const Batch&)>;

/// Equal bytes are promised for any LibTorch, because a kernel that gives others is not used; that
/// all are used only for the arithmetic that they were written after.
inline bool uses_all_kernels() {
  const NumericEnvironment here = current_environment();
  return here.libtorch.rfind("1.13", 0) == 0 && here.cpu_capability == "AVX2";
}

struct Recorded {
  StepProgram program;
  CapturedState state;

  Recorded(const Body& body, const Batch& batch, CapturedState captured = {})
      : state(std::move(captured)) {
    register_with_dispatcher();
    const at::NoGradGuard no_grad;
    Recorder recorder("test", batch, [this] { return state; });
    Outputs outputs;
    {
      const RecordingScope scope(recorder);
      size_t count = 0;
      for (const at::Tensor& tensor : body(batch)) {
        outputs.set("y" + std::to_string(count++), tensor);
      }
    }
    program = recorder.finish(outputs);
  }

  int kernels_of_own(const Plan& plan) const {
    int count = 0;
    for (const PlannedInstruction& planned : plan.instructions) {
      count += planned.lowering == Lowering::Own ? 1 : 0;
    }
    return count;
  }
};

/// What a step returns, and what it makes of its state.
inline std::vector<at::Tensor> results_of(Executor& executor,
                                          const Batch& batch,
                                          const CapturedState& state) {
  std::vector<at::Tensor> results;
  for (const at::Tensor& result : executor.run(batch, kAlwaysDue)) {
    results.push_back(result.clone());
  }
  for (const auto& entry : state) {
    results.push_back(entry.second.clone());
  }
  return results;
}

using Comparison = std::function<bool(const at::Tensor&, const at::Tensor&)>;

/// Whether they have the same bytes, or NaN in the same places: of two NaN that are added, the
/// first one's sign stays, and which is the first is up to a compiler.
inline bool equal_but_for_nans(const at::Tensor& a, const at::Tensor& b) {
  const auto with_one_nan = [](const at::Tensor& x) {
    return x.is_floating_point() ? at::where(x.isnan(), at::full({}, NAN, x.options()), x) : x;
  };
  return equal_bytes(with_one_nan(a), with_one_nan(b));
}

/// Runs several batches by all executors, each from the same state and with the same random
/// numbers: all have the bytes of the first, and have drawn as many.
inline void check_same_bytes(const std::vector<Executor*>& executors,
                             const std::function<Batch(int)>& batch_of,
                             const CapturedState& state,
                             const Comparison& are_equal = equal_bytes) {
  for (int step = 0; step < 5; ++step) {
    CAPTURE(step);
    std::vector<at::Tensor> before;
    for (const auto& entry : state) {
      before.push_back(entry.second.clone());
    }
    std::vector<at::Tensor> expected;
    for (Executor* const executor : executors) {
      for (size_t i = 0; i < state.size(); ++i) {
        at::Tensor(state[i].second).copy_(before[i]);
      }
      const SeededGenerator numbers(static_cast<uint64_t>(step));
      std::vector<at::Tensor> got = results_of(*executor, batch_of(step), state);
      got.push_back(generator_state());
      expected = expected.empty() ? got : expected;
      REQUIRE(got.size() == expected.size());
      for (size_t i = 0; i < got.size(); ++i) {
        CAPTURE(i);
        CHECK(are_equal(got[i], expected[i]));
      }
    }
  }
}

/// Runs what `body` does as a plan and by the interpreter on several batches.
inline void check_same(const std::string& name,
                       const Body& body,
                       const std::function<Batch(int)>& batch_of,
                       int kernels,
                       CapturedState state = {}) {
  CAPTURE(name);
  const Recorded recorded(body, batch_of(0), std::move(state));
  PlannedExecutor plan(recorded.program, TextLog(LogLevel::Error));
  JitExecutor interpreter(recorded.program);
  const int used = recorded.kernels_of_own(plan.plan());
  CHECK((used == kernels || !uses_all_kernels()));
  check_same_bytes({&interpreter, &plan}, batch_of, recorded.state);
  CHECK(recorded.kernels_of_own(plan.plan()) == used);
}

/// What passes made of a step, as a plan and by its operators one by one, against the step as it
/// was recorded.
/// \return kernels of the plan's own
inline int check_passed(const Recorded& recorded,
                        const StepProgram& passed,
                        const std::function<Batch(int)>& batch_of,
                        const Comparison& are_equal = equal_bytes) {
  JitExecutor interpreter(recorded.program);
  PlannedExecutor plan(passed, TextLog(LogLevel::Error));
  JitExecutor by_operators(passed);
  check_same_bytes({&interpreter, &plan, &by_operators}, batch_of, recorded.state, are_equal);
  return recorded.kernels_of_own(plan.plan());
}

/// The same for a plan that need not be exact: near what `body` gives, and by its own kernels.
inline void check_close(const Body& body,
                        const std::function<Batch(int)>& batch_of,
                        CapturedState state = {}) {
  Recorded recorded(body, batch_of(0), std::move(state));
  PlannedExecutor plan(
      recorded.program, TextLog(LogLevel::Error), {/*exact=*/false, /*chains=*/true});
  const int before = recorded.kernels_of_own(plan.plan());
  for (int step = 0; step < 5; ++step) {
    const std::vector<at::Tensor> expected = body(batch_of(step));
    const std::vector<at::Tensor>& got = plan.run(batch_of(step), kAlwaysDue);
    for (size_t i = 0; i < expected.size(); ++i) {
      CHECK(at::allclose(got[i], expected[i], 1e-4, 1e-4));
    }
  }
  CHECK(recorded.kernels_of_own(plan.plan()) == before);
}

inline at::Tensor random(at::IntArrayRef sizes, int seed) {
  return at::randn(sizes, at::detail::createCPUGenerator(static_cast<uint64_t>(seed) + 1));
}

/// With numbers that comparisons treat in special ways.
inline at::Tensor with_odd_numbers(at::Tensor x) {
  const at::Tensor flat = x.view({-1});
  const std::vector<float> odd = {0.0F,
                                  -0.0F,
                                  std::numeric_limits<float>::quiet_NaN(),
                                  std::numeric_limits<float>::infinity(),
                                  -std::numeric_limits<float>::infinity()};
  for (size_t i = 0; i < odd.size(); ++i) {
    flat[static_cast<int64_t>(i) * 3 % flat.numel()] = odd[i];
  }
  return x;
}

inline std::function<Batch(int)> pairs(at::IntArrayRef a, at::IntArrayRef b) {
  return [a = a.vec(), b = b.vec()](int step) {
    return Batch{{"a", with_odd_numbers(random(a, step))}, {"b", random(b, step + 100)}};
  };
}

}  // namespace rondo::test
