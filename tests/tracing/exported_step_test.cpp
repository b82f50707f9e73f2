#include "tracing/exported_step.h"

#include <doctest/doctest.h>
#include <torch/utils.h>

#include <string>
#include <thread>
#include <vector>

#include "backends/generator_state.h"
#include "core/error.h"
#include "tracing/kernel_checks.h"

TEST_SUITE_BEGIN("tracing/exported_step");

using namespace rondo;
using namespace rondo::test;

namespace {

/// A step that moves its state by what dropout leaves of its batch.
StepFile step_with_dropout(uint64_t seed) {
  const at::Tensor w = at::zeros({64});
  const SeededGenerator numbers(seed);
  const Recorded recorded(
      [=](const Batch& batch) {
        w.add_(at::dropout(batch["x"], 0.5, true));
        return std::vector{w * 2};
      },
      {{"x", at::ones({64})}},
      {{"w", w}});
  w.zero_();  // recording ran it
  StepFile file;
  file.programs = {recorded.program};
  file.cycle = {0};
  file.schedules = {{}};
  file.plans = {"the plan of another machine"};
  file.generator = generator_state();
  return file;
}

/// The state after as many runs.
at::Tensor state_after(ExportedStep& step, int runs) {
  const at::Tensor x = at::ones({64});
  step.bind("x", x.data_ptr());
  for (int i = 0; i < runs; ++i) {
    step.run();
  }
  return step.find("w")->clone();
}

/// A file whose first tensor has another value under a name.
StateDict with_bad_tensor(const StateDict& program, const char* name, StateValue value) {
  StateList slots = program.at("slots").as_list();
  StateDict slot = slots[0].as_dict();
  slot.set(name, std::move(value));
  slots[0] = slot;
  StateDict bad = program;
  bad.set("slots", slots);
  return bad;
}

}  // namespace

TEST_CASE("steps that draw random numbers on several threads at once draw their own") {
  constexpr int kRuns = 2000;
  const at::Tensor before = generator_state();
  std::vector<at::Tensor> expected;
  for (const uint64_t seed : {1, 2}) {
    ExportedStep step(step_file_from(to_state(step_with_dropout(seed))));
    expected.push_back(state_after(step, kRuns));
  }
  REQUIRE_FALSE(equal_bytes(expected[0], expected[1]));
  ExportedStep first(step_file_from(to_state(step_with_dropout(1))));
  ExportedStep second(step_file_from(to_state(step_with_dropout(2))));
  std::vector<at::Tensor> got(2);
  std::thread other([&] { got[1] = state_after(second, kRuns); });
  got[0] = state_after(first, kRuns);
  other.join();
  CHECK(equal_bytes(got[0], expected[0]));
  CHECK(equal_bytes(got[1], expected[1]));
  CHECK(equal_bytes(generator_state(), before));
}

TEST_CASE("a step that is saved again keeps the plans of where it was exported") {
  const StateDict saved = to_state(step_with_dropout(1));
  const ExportedStep step(step_file_from(saved));
  const StateDict again = to_state(step.file());
  REQUIRE(again.at("plans").as_list().size() == 1);
  CHECK(again.at("plans").as_list()[0].as_string() == "the plan of another machine");
  StateDict without = saved;
  CHECK(without.erase("plans"));
  CHECK(step_file_from(without).plans.empty());
  const std::vector<std::string> here = plan_texts(step.file());
  REQUIRE(here.size() == 1);
  CHECK(here[0].find("aten::mul") != std::string::npos);
}

TEST_CASE("what is wrong in a file is said with the program, the tensor and the value") {
  ProgramState state;
  const StateDict good = to_state(step_with_dropout(1).programs[0], state);
  CHECK(program_from(good, state).slots.size() > 1);
  const auto message = [&](const StateDict& bad) -> std::string {
    try {
      program_from(bad, state);
    } catch (const CheckpointError& error) {
      return error.what();
    }
    return "";
  };
  const auto says = [&](const StateDict& bad, std::vector<std::string> facts) {
    const std::string text = message(bad);
    CAPTURE(text);
    for (const std::string& fact : facts) {
      CHECK(text.find(fact) != std::string::npos);
    }
  };
  says(with_bad_tensor(good, "strides", StateList{int64_t{-3}}),
       {"\"test\"", "tensor 0", "stride", "-3"});
  says(with_bad_tensor(good, "storage", int64_t{77}), {"\"test\"", "tensor 0", "storage", "77"});
  says(with_bad_tensor(good, "kind", "odd"), {"\"test\"", "tensor 0", "a text"});
  StateDict bad = good;
  StateList instructions = good.at("instructions").as_list();
  instructions.erase(instructions.begin());
  bad.set("instructions", instructions);
  says(bad, {"\"test\"", "instruction 0", "before it is made"});
}

TEST_SUITE_END();
