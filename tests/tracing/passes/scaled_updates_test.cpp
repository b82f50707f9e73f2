#include <doctest/doctest.h>
#include <torch/library.h>
#include <torch/types.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "core/operator_facts.h"
#include "optim/clip.h"
#include "optim/internal/update_operator.h"
#include "optim/operators.h"
#include "tracing/captured_steps.h"
#include "tracing/passes/passes.h"

TEST_SUITE_BEGIN("tracing/passes/scaled_updates");

using namespace rondo;
using namespace rondo::test;

namespace {

int64_t overloads(const StepProgram& program, const std::string& op) {
  return std::count_if(program.instructions.begin(),
                       program.instructions.end(),
                       [&](const Instruction& i) { return operator_name(i.op) == op; });
}

// The first update of an operator's last variant, with numbers that the step makes.
void update(const std::string& name,
            const std::vector<at::Tensor>& params,
            const std::vector<at::Tensor>& grads) {
  register_optimizer_operators();
  const auto operators = rondo::detail::builtin_update_operators();
  const auto op = std::find_if(operators.begin(), operators.end(), [&](const auto* known) {
    return "rondo::" + known->name == name;
  });
  REQUIRE(op != operators.end());
  const rondo::detail::CompiledRule& rule = (*op)->variants.back();
  std::vector<at::Tensor> states;
  std::vector<at::Tensor> counters;
  for (const at::Tensor& param : params) {
    for (size_t i = 0; i < rule.states.size(); ++i) {
      states.push_back(torch::zeros_like(param));
    }
    for (size_t i = 0; i < rule.counters.size(); ++i) {
      counters.push_back(torch::zeros({}, at::kDouble));
    }
  }
  std::vector<at::Tensor> numbers;
  for (size_t i = 0; i < rule.given; ++i) {
    numbers.push_back(torch::full({}, 0.1, at::kDouble));
  }
  torch::jit::Stack stack;
  torch::jit::push(stack,
                   params,
                   grads,
                   states,
                   counters,
                   numbers,
                   static_cast<int64_t>((*op)->variants.size()) - 1,
                   c10::IValue());
  c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), "").callBoxed(&stack);
}

void subtract(at::TensorList params, at::TensorList grads) {
  for (size_t i = 0; i < params.size(); ++i) {
    params[i].sub_(grads[i]);
  }
}

void subtract_scaled(at::TensorList params, at::TensorList grads, const at::Tensor& scale) {
  for (size_t i = 0; i < params.size(); ++i) {
    params[i].sub_(grads[i].mul_(scale));
  }
}

}  // namespace

TEST_CASE("clipping's scale goes into the update that uses the gradients next") {
  for (const rondo::detail::UpdateOperator* op : rondo::detail::builtin_update_operators()) {
    const std::string name = "rondo::" + op->name;
    CAPTURE(name);
    CapturedSteps recorded([&](const at::Tensor& x, const at::Tensor& state) {
      const at::Tensor other = torch::ones({8, 6});
      const std::vector<at::Tensor> grads = {x.sum(0), x.sin()};
      clip_by_norm_(grads, 0.5);
      update(name, {state, other}, grads);
      return other + grads[1];
    });
    const StepProgram passed = scale_gradients_in_updates(recorded.program);
    CHECK(overloads(recorded.program, "aten::mul_.Tensor") == 2);
    CHECK(overloads(passed, "aten::mul_.Tensor") == 0);
    CHECK(overloads(passed, name + ".scaled") == 1);
    recorded.check_same(passed);
  }
}

TEST_CASE(
    "clipping's scale goes into an operator from elsewhere whose facts say that it takes it") {
  static const torch::Library library = [] {
    torch::Library made(torch::Library::FRAGMENT, "rondo_scaled_test", {}, __FILE__, __LINE__);
    OperatorFacts plain{"rondo_scaled_test::subtract_(Tensor(a!)[] params, Tensor[] grads) -> ()"};
    plain.scaled = ScaledForm{"by", 1};
    const OperatorFacts scaled{
        "rondo_scaled_test::subtract_.by(Tensor(a!)[] params, Tensor(b!)[] grads, Tensor scale) -> "
        "()"};
    made.def(plain.schema.c_str());
    made.impl(plain.name().c_str(), torch::dispatch(c10::DispatchKey::CPU, &subtract));
    made.def(scaled.schema.c_str());
    made.impl(scaled.name().c_str(), torch::dispatch(c10::DispatchKey::CPU, &subtract_scaled));
    register_operator_facts(plain);
    register_operator_facts(scaled);
    return made;
  }();
  CapturedSteps recorded([](const at::Tensor& x, const at::Tensor& state) {
    const std::vector<at::Tensor> grads = {x.sum(0)};
    clip_by_norm_(grads, 0.5);
    torch::jit::Stack stack;
    torch::jit::push(stack, std::vector<at::Tensor>{state}, grads);
    c10::Dispatcher::singleton()
        .findSchemaOrThrow("rondo_scaled_test::subtract_", "")
        .callBoxed(&stack);
    return grads[0];
  });
  const StepProgram passed = scale_gradients_in_updates(recorded.program);
  CHECK(overloads(passed, "rondo_scaled_test::subtract_.by") == 1);
  CHECK(overloads(passed, "aten::mul_.Tensor") == 0);
  recorded.check_same(passed);
}

TEST_CASE("scaled gradients that something sees before the update are scaled where they were") {
  using Between = std::function<void(const at::Tensor& grad, const at::Tensor& scale)>;
  const auto check_kept = [](const at::ScalarType scale_dtype, const Between& between) {
    CapturedSteps recorded([&](const at::Tensor& x, const at::Tensor& state) {
      const at::Tensor grad = x.sum(0);
      const at::Tensor scale = x.select(0, 1).select(0, 2).to(scale_dtype, false, /*copy=*/true);
      grad.mul_(scale);
      between(grad, scale);
      update("rondo::sgd_", {state}, {grad});
      return grad + scale;
    });
    const StepProgram passed = scale_gradients_in_updates(recorded.program);
    CHECK(overloads(passed, "rondo::sgd_.scaled") == 0);
    recorded.check_same(passed);
  };
  check_kept(at::kFloat,
             [](const at::Tensor& grad, const at::Tensor& scale) { scale.add_(grad.norm()); });
  check_kept(at::kFloat, [](const at::Tensor& grad, const at::Tensor&) { grad.clamp_(-1, 1); });
  check_kept(at::kFloat, [](const at::Tensor&, const at::Tensor& scale) { scale.add_(1); });
  check_kept(at::kDouble, [](const at::Tensor&, const at::Tensor&) {});
}

TEST_CASE("a gradient that two parameters share is scaled once") {
  CapturedSteps recorded([](const at::Tensor& x, const at::Tensor& state) {
    const at::Tensor other = torch::ones({6});
    const at::Tensor grad = x.sum(0);
    grad.mul_(x.norm());
    update("rondo::sgd_", {state, other}, {grad, grad});
    return other;
  });
  const StepProgram passed = scale_gradients_in_updates(recorded.program);
  CHECK(overloads(passed, "rondo::sgd_.scaled") == 0);
  recorded.check_same(passed);
}

TEST_CASE("an update of which only some gradients are scaled, or by several numbers, is left") {
  CapturedSteps recorded([](const at::Tensor& x, const at::Tensor& state) {
    const at::Tensor other = torch::ones({8, 6});
    const std::vector<at::Tensor> grads = {x.sum(0), x.sin()};
    grads[0].mul_(x.norm());
    update("rondo::sgd_", {state, other}, grads);
    grads[0].mul_(x.norm());
    grads[1].mul_(x.sum());
    update("rondo::sgd_", {state, other}, grads);
    return other;
  });
  const StepProgram passed = scale_gradients_in_updates(recorded.program);
  CHECK(overloads(passed, "rondo::sgd_.scaled") == 0);
  recorded.check_same(passed);
}

TEST_SUITE_END();
