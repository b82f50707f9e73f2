#include "tracing/checks/operator_comparison.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <string>

#include "support/step_probe.h"
#include "tracing/make_backend.h"
#include "tracing/plan/planned_executor.h"
#include "tracing/recording/dispatcher.h"
#include "tracing/recording/recorder.h"
#include "tracing/traced_backend.h"

TEST_SUITE_BEGIN("tracing/checks/operator_comparison");

using namespace rondo;
using namespace rondo::test;

namespace {

std::unique_ptr<Backend> comparing_backend() {
  Instruments instruments;
  instruments.compares_operators = true;
  return make_backend(BackendOptions(), TextLog(LogLevel::Error), instruments);
}

StepProgram recorded_program(const Batch& batch) {
  register_with_dispatcher();
  Recorder recorder("test", batch, [] { return CapturedState(); });
  Outputs outputs;
  {
    const RecordingScope scope(recorder);
    outputs.set("y", batch["x"].add(1.0).exp().mm(batch["x"].t()).sum());
  }
  return recorder.finish(outputs);
}

}  // namespace

TEST_CASE("an exact replay has no operator that differs, and the run has the bits of any other") {
  const auto compared = comparing_backend();
  const ProbeRun with = run_probe(plain_descent, *compared, 8);
  const ProbeRun without = run_probe(plain_descent, *backend_of("traced"), 8);
  CHECK(first_difference(with.bytes, without.bytes) == "");
  const auto steps = dynamic_cast<TracedBackend&>(*compared).comparisons();
  REQUIRE(steps.size() == 1);
  CHECK(steps[0].errors.operators.size() > 5);
  CHECK(steps[0].errors.first() == nullptr);
  CHECK(to_text(steps[0]).find("0 differ") != std::string::npos);
  CHECK(to_text(steps[0]).find("aten::addmm") != std::string::npos);
}

TEST_CASE("random numbers and host calls are those of the replay") {
  const auto make = [] {
    auto calls = std::make_shared<int>(0);
    StepProbe probe = descent([](const auto& x, const auto& label, const auto& w, const auto& b) {
      return plain_loss(torch::dropout(x, 0.5, true), label, w, b);
    });
    const at::Tensor lr = probe.state[2].second;
    probe.body = [body = probe.body, lr, calls](Backend& backend, const Batch& batch) {
      backend.host_call("rate", {lr}, [calls](const std::vector<at::Tensor>& tensors) {
        tensors[0].fill_(0.1 / static_cast<double>(++*calls));
      });
      return body(backend, batch);
    };
    return probe;
  };
  const auto compared = comparing_backend();
  const ProbeRun with = run_probe(make, *compared, 8);
  const ProbeRun without = run_probe(make, *backend_of("traced"), 8);
  CHECK(first_difference(with.bytes, without.bytes) == "");
  const auto steps = dynamic_cast<TracedBackend&>(*compared).comparisons();
  REQUIRE(steps.size() == 1);
  const OperatorError* const first = steps[0].errors.first();
  CHECK_MESSAGE(first == nullptr, to_text(steps[0]));
}

TEST_CASE("the first operator that differs is named, with the errors that follow from it") {
  const Batch batch{{"x", torch::rand({4, 3})}};
  const StepProgram recorded = recorded_program(batch);
  StepProgram changed = recorded;  // stands for a kernel that is wrong by 1e-3
  for (Instruction& instruction : changed.instructions) {
    if (operator_name(instruction.op) == "aten::add.Tensor" ||
        operator_name(instruction.op) == "aten::add.Scalar") {
      for (Slot& slot : changed.slots) {
        if (slot.kind == SlotKind::Constant) {
          slot.value = slot.value + 1e-3;
        }
      }
      if (instruction.arguments[1].kind == Argument::Kind::Constant) {
        instruction.arguments[1].constant = at::Scalar(1.001);
      }
    }
  }
  PlannedExecutor executor(changed, TextLog(LogLevel::Error));
  OperatorComparison comparison(recorded);
  REQUIRE(comparison.replay(executor, batch) != nullptr);
  const ComparedStep step{"test", comparison.run_recorded(batch, {})};
  const OperatorError* const first = step.errors.first();
  REQUIRE(first != nullptr);
  CHECK(first->op.rfind("aten::add", 0) == 0);
  CHECK(first->differing == 12);
  CHECK(first->largest == doctest::Approx(1e-3).epsilon(0.01));
  CHECK(first->relative > 1e-4);
  const auto& last = step.errors.operators.back();
  CHECK(last.op.rfind("aten::sum", 0) == 0);
  CHECK(last.differing == 1);
  const std::string text = to_text(step);
  CHECK(text.find("first that differs: aten::add") != std::string::npos);
  CHECK(to_json(step).find("\"differing\": 12") != std::string::npos);
}

TEST_SUITE_END();
