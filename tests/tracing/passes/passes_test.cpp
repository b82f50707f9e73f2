#include "tracing/passes/passes.h"

#include <doctest/doctest.h>
#include <torch/autograd.h>
#include <torch/types.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tracing/captured_steps.h"
#include "tracing/instruction_count.h"

TEST_SUITE_BEGIN("tracing/passes/passes");

using namespace rondo;
using namespace rondo::test;

TEST_CASE("the clean-up of a whole step leaves the same bytes") {
  CapturedSteps recorded([](const at::Tensor& x, const at::Tensor& state) {
    const at::Tensor w = state.detach().clone().view({6, 1}).requires_grad_(true);
    const at::Tensor loss = torch::dropout(x.mm(w), 0.5, true).square().mean();
    const at::Tensor grad = torch::autograd::grad({loss}, {w})[0];
    state.sub_(grad.view({6}) * 0.1);
    return loss;
  });
  const StepProgram passed = clean_up(recorded.program).program;
  CHECK(passed.instructions.size() < recorded.program.instructions.size());
  recorded.check_same(passed);
}

TEST_CASE("a pass that is left out leaves its instructions in, and the others are counted") {
  CapturedSteps recorded([](const at::Tensor& x, const at::Tensor&) {
    x.sin();
    return x.cos().sum();
  });
  const CleanedUp all = clean_up(recorded.program);
  const CleanedUp some = clean_up(recorded.program, {"dead_code"});
  CHECK(count(all.program, "aten::sin") == 0);
  CHECK(count(some.program, "aten::sin") == 1);
  const auto applied = [](const CleanedUp& cleaned_up, const std::string& name) {
    const auto found = std::find_if(cleaned_up.applied.begin(),
                                    cleaned_up.applied.end(),
                                    [&](const auto& pass) { return pass.first == name; });
    REQUIRE(found != cleaned_up.applied.end());
    return found->second;
  };
  CHECK(applied(all, "dead_code") == 1);
  CHECK(applied(some, "dead_code") == 0);
  CHECK(all.applied.size() == clean_up_passes().size());
}

TEST_CASE("each instruction knows the closures that need it") {
  CapturedSteps recorded([](const at::Tensor& x, const at::Tensor&) { return x.sum(); },
                         [](BodyRequests& requests, const at::Tensor& y) {
                           requests.defer({{y.exp()}, {}, {}});
                           requests.defer({{y.sin(), y}, {}, {}});
                         });
  const StepProgram program = remove_dead_code(recorded.program);
  REQUIRE(program.closures.size() == 2);
  const std::vector<DueSet> users = find_users(program);
  REQUIRE(users.size() == program.instructions.size());
  for (size_t i = 0; i < users.size(); ++i) {
    const std::string name = operator_name(program.instructions[i].op);
    CAPTURE(name);
    CHECK(users[i] == (name == "aten::exp" ? 1 : name == "aten::sin" ? 2 : kAlwaysDue));
  }
}

TEST_SUITE_END();
