#include "optim/sgd.h"

#include <torch/optim/optimizer.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include <doctest/doctest.h>

#include "core/error.h"
#include "parameters.h"

using namespace rondo;
using namespace rondo::test;

namespace {

torch::optim::SGDOptions torch_options(const Sgd::Options& o) {
  return torch::optim::SGDOptions(o.lr)
      .momentum(o.momentum)
      .dampening(o.dampening)
      .weight_decay(o.weight_decay)
      .nesterov(o.nesterov);
}

struct Variant {
  const char* name;
  Sgd::Options options;
};

const std::vector<Variant> kVariants = {
    {"plain", {0.1}},
    {"weight decay", {0.1, 0.0, 0.0, 0.01}},
    {"momentum", {0.03, 0.9}},
    {"momentum and dampening", {0.03, 0.9, 0.3}},
    {"momentum, dampening and weight decay", {0.03, 0.9, 0.1, 1e-3}},
    {"nesterov", {0.03, 0.9, 0.0, 1e-3, true}},
};

/// Both optimizers over 50 updates; the name of what first differed.
std::string run_both(const Sgd::Options& options, NamedTensors ours, NamedTensors theirs) {
  Sgd sgd(options);
  sgd.attach(ours);
  torch::optim::SGD reference(tensors(theirs), torch_options(options));
  for (int step = 0; step < 50; ++step) {
    give_gradients(ours, theirs, step);
    sgd.step();
    reference.step();
    const std::string different = first_different(ours, theirs);
    if (!different.empty()) {
      return different + " at step " + std::to_string(step);
    }
  }
  return "";
}

}  // namespace

TEST_SUITE_BEGIN("optim/sgd");

TEST_CASE("SGD equals torch::optim::SGD bit for bit, in each variant and dtype") {
  for (const Variant& variant : kVariants) {
    for (const auto dtype : {at::kFloat, at::kDouble, at::kBFloat16}) {
      CAPTURE(variant.name);
      CAPTURE(dtype);
      CHECK(run_both(variant.options, parameters(7, dtype), parameters(7, dtype)) == "");
    }
  }
}

TEST_CASE("tensors that are not contiguous are updated as torch::optim updates them") {
  const auto strided = [] {
    NamedTensors made = parameters(5, at::kFloat, {{6, 4, 3, 3}, {10, 14}});
    made[0].second = made[0].second.detach().contiguous(at::MemoryFormat::ChannelsLast);
    made[1].second =
        made[1].second.detach().t().slice(0, 0, 14, 2);  // neither dense nor contiguous
    for (NamedTensor& parameter : made) {
      parameter.second.requires_grad_();
    }
    return made;
  };
  CHECK(run_both({0.03, 0.9, 0.2, 1e-3}, strided(), strided()) == "");
}

TEST_CASE("groups have their own numbers, as in torch::optim") {
  Sgd::Options options{0.1, 0.9};
  options.params = {{{"p1", "p3"}, "slow", {{"lr", 0.01}, {"weight_decay", 0.1}}},
                    {{"p4"}, "", {{"momentum", 0.0}}}};
  const NamedTensors ours = parameters(1);
  const NamedTensors theirs = parameters(1);
  Sgd sgd(options);
  sgd.attach(ours);
  using Group = torch::optim::OptimizerParamGroup;
  const auto options_of = [](double lr, double momentum, double decay) {
    return std::make_unique<torch::optim::SGDOptions>(
        torch::optim::SGDOptions(lr).momentum(momentum).weight_decay(decay));
  };
  const auto t = tensors(theirs);
  std::vector<Group> groups;
  groups.emplace_back(std::vector<at::Tensor>{t[0], t[2], t[5], t[6], t[7], t[8]},
                      options_of(0.1, 0.9, 0.0));
  groups.emplace_back(std::vector<at::Tensor>{t[1], t[3]}, options_of(0.01, 0.9, 0.1));
  groups.emplace_back(std::vector<at::Tensor>{t[4]}, options_of(0.1, 0.0, 0.0));
  torch::optim::SGD reference(groups, torch::optim::SGDOptions(0.1));
  for (int step = 0; step < 20; ++step) {
    give_gradients(ours, theirs, step);
    sgd.step();
    reference.step();
  }
  CHECK(first_different(ours, theirs) == "");
}

TEST_CASE(
    "a parameter without a gradient is skipped, and its first update comes when it gets one") {
  const Sgd::Options options{0.1, 0.9, 0.5};
  const NamedTensors ours = parameters(2);
  const NamedTensors theirs = parameters(2);
  Sgd sgd(options);
  sgd.attach(ours);
  torch::optim::SGD reference(tensors(theirs), torch_options(options));
  for (int step = 0; step < 12; ++step) {
    give_gradients(ours, theirs, step);
    if (step % 3 != 2) {
      ours[4].second.mutable_grad().reset();
      theirs[4].second.mutable_grad().reset();
    }
    sgd.step();
    reference.step();
    REQUIRE(first_different(ours, theirs) == "");
  }
  sgd.zero_grad();
  const at::Tensor before = ours[4].second.detach().clone();
  sgd.step();
  CHECK(equal_bytes(ours[4].second.detach(), before));
}

TEST_CASE("without weight decay the value of a weight does not reach its gradient") {
  const NamedTensors params = {{"w", at::full({9}, INFINITY).requires_grad_()}};
  Sgd sgd({0.1, 0.9});
  sgd.attach(params);
  params[0].second.mutable_grad() = at::ones({9});
  sgd.step();
  CHECK(at::equal(sgd.groups()[0].params[0].state("momentum_buffer"), at::ones({9})));
}

TEST_CASE("no momentum, no buffers; momentum that comes later without them is refused") {
  const NamedTensors params = parameters(2);
  Sgd sgd({0.1});
  sgd.attach(params);
  CHECK(sgd.groups()[0].params[0].states().empty());
  *sgd.groups()[0]["momentum"].data_ptr<double>() = 0.9;
  give_gradients(params, params, 1);
  CHECK_THROWS_AS(sgd.step(), UsageError);
}

TEST_CASE("options out of range are refused") {
  CHECK_THROWS_AS(Sgd({-0.1}), UsageError);
  CHECK_THROWS_AS(Sgd({0.1, -0.9}), UsageError);
  CHECK_THROWS_AS(Sgd({0.1, 0.9, 2.0}), UsageError);
  CHECK_THROWS_AS(Sgd({0.1, 0.9, 0.0, -1.0}), UsageError);
  CHECK_THROWS_AS(Sgd({0.1, 0.0, 0.0, 0.0, true}), UsageError);
  CHECK_THROWS_AS(Sgd({0.1, 0.9, 0.1, 0.0, true}), UsageError);
}

TEST_SUITE_END();
