#include "optim/operators.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <doctest/doctest.h>
#include <torch/types.h>

using namespace rondo;

namespace {

const c10::FunctionSchema& schema(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").schema();
}

bool writes(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

at::Tensor number(double value) {
  return at::scalar_tensor(value, at::kDouble);
}

void run_sgd(std::vector<at::Tensor> params, std::vector<at::Tensor> grads, at::Tensor lr) {
  torch::jit::Stack stack;
  const c10::List<at::Tensor> none;
  torch::jit::push(stack, params, grads, none, none, lr, number(0), number(0), number(0), false);
  c10::Dispatcher::singleton().findSchemaOrThrow("rondo::sgd_", "").callBoxed(&stack);
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
  for (const char* name : {"rondo::sgd_", "rondo::adam_"}) {
    for (const c10::Argument& argument : schema(name).arguments()) {
      const bool is_list = argument.type()->kind() == c10::TypeKind::ListType;
      CAPTURE(argument.name());
      CHECK(writes(argument) == (is_list && argument.name() != "grads"));
    }
  }
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
