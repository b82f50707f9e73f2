#include "models/recompute.h"

#include <ATen/Context.h>
#include <doctest/doctest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "core/state_dict.h"
#include "core/torch_compat.h"

using namespace rondo;

namespace {

namespace nn = torch::nn;

using at::Tensor;

nn::Sequential block() {
  torch::manual_seed(3);
  return nn::Sequential(nn::Linear(6, 8), nn::BatchNorm1d(8), nn::Tanh(), nn::Dropout(0.4));
}

/// What a forward and its gradient leave.
std::vector<Tensor> trained(bool recomputes, at::ScalarType autocast = at::kFloat) {
  nn::Sequential module = block();
  torch::manual_seed(7);
  Tensor x = torch::randn({5, 6}).set_requires_grad(true);
  const bool is_cast = autocast != at::kFloat;
  compat::set_autocast(at::kCPU, is_cast);
  compat::set_autocast_dtype(at::kCPU, is_cast ? autocast : at::kBFloat16);
  const Tensor y =
      recomputes ? recompute(*module, [&](const auto& in) { return module->forward(in[0]); }, {x})
                 : module->forward(x);
  const Tensor later = torch::rand({3});  // random numbers go on where they would
  const Tensor loss = y.to(at::kFloat).square().sum() + x.sum();
  compat::set_autocast(at::kCPU, false);
  at::autocast::clear_cache();
  loss.backward();
  std::vector<Tensor> all = {y.detach(), later, torch::rand({3}), x.grad()};
  for (const Tensor& parameter : module->parameters()) {
    all.push_back(parameter.grad());
  }
  for (const Tensor& buffer : module->buffers()) {
    all.push_back(buffer.clone());
  }
  return all;
}

void check_equal(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    REQUIRE(b[i].defined());
    CHECK(equal_bytes(a[i], b[i]));
  }
}

}  // namespace

TEST_SUITE_BEGIN("models/recompute");

TEST_CASE("results, gradients, buffers and random numbers are those of a plain forward") {
  check_equal(trained(false), trained(true));
}

TEST_CASE("so they are under autocast") {
  check_equal(trained(false, at::kBFloat16), trained(true, at::kBFloat16));
}

TEST_CASE("only the inputs live until the backward pass, and the part runs twice") {
  nn::Linear module(4, 4);
  int runs = 0;
  std::vector<at::TensorImpl*> inside;
  c10::weak_intrusive_ptr<at::TensorImpl> between(Tensor(torch::ones({1})).getIntrusivePtr());
  const Tensor x = torch::ones({2, 4});
  const Tensor y =
      recompute(*module,
                [&](const auto& in) {
                  ++runs;
                  const Tensor hidden = module->forward(in[0]).tanh();
                  between = c10::weak_intrusive_ptr<at::TensorImpl>(hidden.getIntrusivePtr());
                  return hidden.square();
                },
                {x});
  CHECK(runs == 1);
  CHECK(between.expired());
  y.sum().backward();
  CHECK(runs == 2);
  CHECK(module->weight.grad().defined());
}

TEST_CASE("a model of one's own computes its blocks again") {
  const nn::Linear first(4, 4);
  const nn::Linear second(4, 4);
  Tensor x = torch::ones({2, 4});
  for (nn::Linear block : {first, second}) {
    x = rondo::recompute(
        *block, [block](const auto& in) mutable { return block->forward(in[0]); }, {x});
  }
  x.sum().backward();
  CHECK(first->weight.grad().defined());
  CHECK(second->weight.grad().defined());
}

TEST_CASE("without gradients it is a plain call") {
  nn::Linear module(4, 4);
  const at::NoGradGuard no_grad;
  int runs = 0;
  const Tensor y = recompute(*module,
                             [&](const auto& in) {
                               ++runs;
                               return module->forward(in[0]);
                             },
                             {torch::ones({2, 4})});
  CHECK(runs == 1);
  CHECK_FALSE(y.requires_grad());
}

TEST_CASE("a parameter that the module does not own is refused") {
  nn::Linear owned(4, 4);
  nn::Linear other(4, 4);
  const Tensor y = recompute(*owned,
                             [&](const auto& in) { return other->forward(owned->forward(in[0])); },
                             {torch::ones({2, 4})});
  CHECK_THROWS_WITH_AS(
      y.sum().backward(), doctest::Contains("that its module does not own"), UsageError);
}

TEST_CASE("a second backward pass has the random numbers of the first") {
  nn::Sequential module = block();
  const Tensor x = torch::ones({5, 6});
  const Tensor y =
      recompute(*module, [&](const auto& in) { return module->forward(in[0]); }, {x}).sum();
  const std::vector<Tensor> parameters = module->parameters();
  const auto first = torch::autograd::grad({y}, parameters, {}, /*retain_graph=*/true);
  const auto second = torch::autograd::grad({y}, parameters);
  check_equal(first, second);
}

TEST_CASE("a part in a part has the gradients of a plain forward") {
  nn::Sequential module = block();
  const Tensor x = torch::ones({5, 6});
  const auto plain = [&](const auto& in) { return module->forward(in[0]); };
  const auto within = [&](const auto& in) { return recompute(*module, plain, {in[0]}).tanh(); };
  const std::vector<Tensor> parameters = module->parameters();
  torch::manual_seed(4);
  const auto expected =
      torch::autograd::grad({plain(std::vector<Tensor>{x}).tanh().sum()}, parameters);
  torch::manual_seed(4);
  check_equal(expected, torch::autograd::grad({recompute(*module, within, {x}).sum()}, parameters));
}

TEST_CASE("an error in the second run leaves random numbers and buffers as they were") {
  nn::Sequential module = block();
  int runs = 0;
  const Tensor y = recompute(*module,
                             [&](const auto& in) {
                               const Tensor out = module->forward(in[0]);
                               return ++runs == 2 ? throw DataError("the second run") : out;
                             },
                             {torch::ones({5, 6})});
  const std::vector<Tensor> buffers = module->buffers();
  const Tensor mean = buffers[0].clone();
  const Tensor random = at::globalContext().defaultGenerator(at::kCPU).get_state();
  CHECK_THROWS_AS(y.sum().backward(), DataError);
  CHECK(equal_bytes(mean, buffers[0]));
  CHECK(equal_bytes(random, at::globalContext().defaultGenerator(at::kCPU).get_state()));
}

TEST_CASE("second derivatives are refused") {
  nn::Linear module(4, 4);
  const Tensor x = torch::ones({2, 4}).set_requires_grad(true);
  const Tensor y =
      recompute(*module, [&](const auto& in) { return module->forward(in[0]).tanh(); }, {x});
  CHECK_THROWS_AS(torch::autograd::grad({y.sum()}, {x}, {}, true, /*create_graph=*/true),
                  NotSupportedError);
}

TEST_SUITE_END();
