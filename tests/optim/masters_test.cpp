#include <doctest/doctest.h>
#include <torch/types.h>

#include <cmath>
#include <memory>
#include <vector>

#include "core/state_dict.h"
#include "optim/adam.h"
#include "optim/sgd.h"
#include "parameters.h"
#include "support/every_optimizer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

const std::vector<std::vector<int64_t>> kMatrices = {{4, 3}, {3}, {3, 5}, {2, 3, 2, 2}};

NamedTensors half_parameters() {
  return parameters(1, at::kBFloat16, kMatrices);
}

NamedTensors widened(const NamedTensors& params) {
  NamedTensors wide;
  for (const NamedTensor& param : params) {
    wide.emplace_back(param.first, param.second.detach().to(at::kFloat).requires_grad_());
  }
  return wide;
}

/// Gradients of bfloat16, and the same in float32.
void give(const NamedTensors& half, const NamedTensors& wide, uint64_t seed) {
  give_gradients(half, half, seed);
  for (size_t i = 0; i < half.size(); ++i) {
    wide[i].second.mutable_grad() = half[i].second.grad().to(at::kFloat);
  }
}

}  // namespace

TEST_SUITE_BEGIN("optim/masters");

TEST_CASE("masters are updated as float32 parameters are, and rounded into the model's") {
  for (const RegisteredOptimizer& registered : every_optimizer()) {
    CAPTURE(registered.name);
    CAPTURE(registered.keys);
    const NamedTensors half = half_parameters();
    const NamedTensors wide = widened(half);
    const std::unique_ptr<Optimizer> with_masters = registered.factory.make();
    const std::unique_ptr<Optimizer> plain = registered.factory.make();
    with_masters->attach(half, Masters::Float32);
    plain->attach(wide);
    for (uint64_t seed = 0; seed < 4; ++seed) {
      give(half, wide, seed);
      with_masters->gather_grads();
      with_masters->step();
      with_masters->zero_grad();
      plain->step();
    }
    for (ParamGroup& group : with_masters->groups()) {
      for (Parameter& parameter : group.params) {
        for (size_t i = 0; i < half.size(); ++i) {
          if (half[i].first == parameter.name) {
            CHECK(equal_bytes(parameter.state("master"), wide[i].second.detach()));
            CHECK(equal_bytes(half[i].second.detach(), wide[i].second.detach().to(at::kBFloat16)));
          }
        }
      }
    }
  }
}

TEST_CASE("steps that bfloat16 cannot show add up in the master") {
  const at::Tensor weight = torch::ones({2}, at::kBFloat16).requires_grad_();
  Sgd optimizer({1e-4});
  optimizer.attach({{"w", weight}}, Masters::Float32);
  for (int i = 0; i < 100; ++i) {
    weight.mutable_grad() = torch::ones({2}, at::kBFloat16);
    optimizer.gather_grads();
    optimizer.step();
    optimizer.zero_grad();
  }
  CHECK(weight[0].item<double>() == doctest::Approx(0.99).epsilon(0.002));
}

TEST_CASE("gradients are the masters', in float32, and are undefined after zero_grad") {
  const NamedTensors half = half_parameters();
  AdamW optimizer({1e-3});
  optimizer.attach(half, Masters::Float32);
  give_gradients(half, half, 1);
  CHECK(optimizer.grads().empty());
  optimizer.gather_grads();
  REQUIRE(optimizer.grads().size() == half.size());
  for (const at::Tensor& grad : optimizer.grads()) {
    CHECK((grad.scalar_type() == at::kFloat));
  }
  optimizer.zero_grad();
  CHECK(optimizer.grads().empty());
  CHECK(!half[0].second.grad().defined());
}

TEST_CASE("gradients of a group of batches add up in float32") {
  const at::Tensor weight = torch::ones({2}, at::kBFloat16).requires_grad_();
  Sgd optimizer({1.0});
  optimizer.attach({{"w", weight}}, Masters::Float32);
  const auto give = [&](double value) {
    weight.mutable_grad() = at::full({2}, value, at::kBFloat16);
  };
  for (int update = 0; update < 2; ++update) {
    give(1.0);
    optimizer.keep_grads();
    CHECK(!weight.grad().defined());
    give(std::ldexp(1.0, -10));
    optimizer.keep_grads();
    give(std::ldexp(1.0, -12));
    optimizer.gather_grads();
    const double sum = 1.0 + std::ldexp(1.0, -10) + std::ldexp(1.0, -12);
    CHECK(optimizer.grads()[0][0].item<double>() == sum);
    optimizer.zero_grad();
    CHECK(optimizer.grads().empty());
  }
  optimizer.bind_grads(true);
  CHECK(optimizer.grads().size() == 1);
  CHECK(!weight.grad().defined());
  optimizer.bind_grads(false);
  CHECK(optimizer.grads().empty());
}

TEST_CASE("masters are saved as a state and loaded in place; a model that was written sets them") {
  const NamedTensors half = half_parameters();
  AdamW optimizer({1e-3});
  optimizer.attach(half, Masters::Float32);
  give_gradients(half, half, 1);
  optimizer.gather_grads();
  optimizer.step();
  const StateDict saved = deep_copy(optimizer.state_dict());
  CHECK((saved.find("state/p0/master")->as_tensor().scalar_type() == at::kFloat));
  optimizer.step();
  optimizer.load(saved);
  CHECK(first_difference(optimizer.state_dict(), saved) == "");

  const at::NoGradGuard no_grad;
  half[0].second.fill_(0.5);
  optimizer.follow_parameters();
  CHECK(at::equal(optimizer.groups()[0].params[0].value, at::full({4, 3}, 0.5)));
}

TEST_CASE("parameters in float32 have no master") {
  const NamedTensors params = parameters(1, at::kFloat, kMatrices);
  AdamW optimizer({1e-3});
  optimizer.attach(params, Masters::Float32);
  CHECK(optimizer.groups()[0].params[0].value.is_same(params[0].second));
  CHECK(optimizer.groups()[0].params[0].states().size() == 3);
}

TEST_SUITE_END();
