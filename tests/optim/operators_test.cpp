#include "optim/operators.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <doctest/doctest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <string>
#include <vector>

#include "core/state_dict.h"
#include "optim/internal/update_operator.h"

using namespace rondo;

namespace {

const c10::FunctionSchema& schema(const std::string& name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), "").schema();
}

/// Of the operators of all optimizers.
std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const rondo::detail::UpdateOperator* op : rondo::detail::builtin_update_operators()) {
    all.push_back("rondo::" + op->name);
  }
  return all;
}

bool writes(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

at::Tensor number(double value) {
  return at::scalar_tensor(value, at::kDouble);
}

void run_sgd(std::vector<at::Tensor> params,
             std::vector<at::Tensor> grads,
             at::Tensor lr,
             at::Tensor grad_scale = {},
             const c10::IValue& skip = {}) {
  torch::jit::Stack stack;
  const c10::List<at::Tensor> none;
  const std::vector<at::Tensor> numbers = {lr, number(0), number(0), number(0)};
  torch::jit::push(stack, params, grads, none, none, numbers, 0, skip);
  if (grad_scale.defined()) {
    torch::jit::push(stack, grad_scale);
  }
  c10::Dispatcher::singleton()
      .findSchemaOrThrow("rondo::sgd_", grad_scale.defined() ? "scaled" : "")
      .callBoxed(&stack);
}

}  // namespace

TEST_SUITE_BEGIN("optim/operators");

TEST_CASE("the operators are registered once, however often it is asked for") {
  register_optimizer_operators();
  register_optimizer_operators();
  CHECK(schema("rondo::sgd_").returns().empty());
  CHECK(schema("rondo::adam_").returns().empty());
}

TEST_CASE("the schemas say what is written") {
  register_optimizer_operators();
  for (const std::string& name : names()) {
    for (const c10::Argument& argument : schema(name).arguments()) {
      const bool is_list = argument.type()->kind() == c10::TypeKind::ListType;
      CAPTURE(argument.name());
      const bool is_read = argument.name() == "grads" || argument.name() == "numbers";
      CHECK(writes(argument) == (is_list && !is_read));
    }
  }
}

TEST_CASE("updates that scale gradients write them, and nothing else besides") {
  register_optimizer_operators();
  for (const std::string& name : names()) {
    const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), "scaled");
    const c10::FunctionSchema& scaled = op.schema();
    const size_t count = schema(name).arguments().size();
    REQUIRE(scaled.arguments().size() == count + 1);
    for (size_t i = 0; i <= count; ++i) {
      const c10::Argument& argument = scaled.arguments()[i];
      const bool is_list = argument.type()->kind() == c10::TypeKind::ListType;
      CAPTURE(argument.name());
      CHECK(writes(argument) == (is_list && argument.name() != "numbers"));
      CHECK((i == count || argument.name() == schema(name).arguments()[i].name()));
    }
  }
}

TEST_CASE("scaling within an update has the bits of scaling before it, of denormal numbers too") {
  register_optimizer_operators();
  const auto check = [](const at::TensorOptions& options, bool is_strided, double factor) {
    CAPTURE(is_strided);
    CAPTURE(factor);
    torch::manual_seed(3);
    // More than one part, and one that is cut short.
    at::Tensor param = torch::randn({3, 2111}, options);
    at::Tensor grad = torch::randn({2111, 3}, options).t();
    grad = is_strided ? grad : grad.contiguous();
    grad.select(1, 7).mul_(1e-38);
    const at::Tensor same_param = param.clone();
    const at::Tensor same_grad = grad.clone(at::MemoryFormat::Preserve);
    const at::Tensor scale = at::scalar_tensor(factor, options);

    run_sgd({param}, {grad}, number(0.1), scale);
    same_grad.mul_(scale);
    run_sgd({same_param}, {same_grad}, number(0.1));

    CHECK(equal_bytes(grad, same_grad));
    CHECK(equal_bytes(param, same_param));
  };
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    for (const bool is_strided : {false, true}) {
      check(dtype, is_strided, 0.3);
      check(dtype, is_strided, -1e-3);
    }
  }
}

TEST_CASE("an update that is skipped scales its gradients all the same") {
  register_optimizer_operators();
  const at::Tensor param = at::ones({3});
  const at::Tensor grad = at::full({3}, 4.0);
  run_sgd({param}, {grad}, number(0.5), at::scalar_tensor(0.5), torch::tensor(true));
  CHECK(at::equal(param, at::ones({3})));
  CHECK(at::equal(grad, at::full({3}, 2.0)));
}

TEST_CASE("numbers are read when the operator runs, from its boxed arguments too") {
  register_optimizer_operators();
  const at::Tensor param = at::ones({3});
  const at::Tensor lr = number(0.5);
  run_sgd({param}, {at::ones({3})}, lr);
  CHECK(at::equal(param, at::full({3}, 0.5)));
  lr.fill_(0.25);
  run_sgd({param}, {at::ones({3})}, lr);
  CHECK(at::equal(param, at::full({3}, 0.25)));
}

TEST_CASE("lists of different lengths and numbers of another type are refused") {
  register_optimizer_operators();
  CHECK_THROWS_AS(run_sgd({at::ones({3})}, {}, number(1)), c10::Error);
  CHECK_THROWS_AS(run_sgd({at::ones({3})}, {at::ones({3})}, at::ones({})), c10::Error);
}

TEST_SUITE_END();
