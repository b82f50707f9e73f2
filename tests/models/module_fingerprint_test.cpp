#include "models/module_fingerprint.h"

#include <doctest/doctest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <string>

#include "core/fingerprint.h"

using namespace rondo;

namespace nn = torch::nn;

TEST_SUITE_BEGIN("models/module_fingerprint");

namespace {

struct Network final : nn::Module {
  nn::Sequential layers =
      register_module("layers", nn::Sequential(nn::Linear(4, 3), nn::BatchNorm1d(3)));
  at::Tensor scale = register_buffer("scale", torch::ones({3}));

  nn::LinearImpl& linear() { return *layers[0]->as<nn::Linear>(); }
};

uint64_t of(const nn::Module& module) {
  Fingerprint fingerprint;
  add_module(fingerprint, module);
  return fingerprint.value();
}

}  // namespace

TEST_CASE("what a step depends on in a module changes its fingerprint, and values do not") {
  Network network;
  const uint64_t before = of(network);
  SUBCASE("values") {
    const torch::NoGradGuard no_grad;
    network.linear().weight.fill_(3);
    network.scale.mul_(2);
    CHECK(of(network) == before);
    return;
  }
  SUBCASE("a member that is assigned and not registered, as docs/tracing.md says") {
    network.linear().weight = torch::zeros({3, 4});
    CHECK(of(network) == before);
    return;
  }
  SUBCASE("a frozen parameter") {
    network.linear().weight.requires_grad_(false);
  }
  SUBCASE("a buffer that takes a gradient") {
    network.scale.requires_grad_(true);
  }
  SUBCASE("the mode of a part") {
    network.layers[1]->eval();
  }
  SUBCASE("a new parameter") {
    network.linear().register_parameter("more", torch::zeros({1}));
  }
  SUBCASE("a new buffer") {
    network.linear().register_buffer("more", torch::zeros({1}));
  }
  SUBCASE("a new module") {
    network.layers->push_back(nn::Linear(3, 3));
  }
  SUBCASE("another module") {
    network.replace_module("layers", nn::Sequential(nn::Linear(4, 3), nn::BatchNorm1d(3)));
  }
  SUBCASE("no module") {
    network.unregister_module("layers");
  }
  CHECK(of(network) != before);
}

TEST_CASE("a fingerprint comes back with what it was of") {
  Network network;
  const uint64_t before = of(network);
  network.linear().bias.requires_grad_(false);
  network.layers->eval();
  const uint64_t frozen = of(network);
  network.linear().bias.requires_grad_(true);
  network.layers->train();
  CHECK(of(network) == before);
  network.linear().bias.requires_grad_(false);
  network.layers->eval();
  CHECK(of(network) == frozen);
}

TEST_CASE("two parameters that change places are told apart") {
  Network network;
  network.linear().weight.requires_grad_(false);
  const uint64_t weight = of(network);
  network.linear().weight.requires_grad_(true);
  network.linear().bias.requires_grad_(false);
  CHECK(of(network) != weight);
}

TEST_SUITE_END();
