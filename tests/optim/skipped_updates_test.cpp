#include <doctest/doctest.h>
#include <torch/types.h>

#include <limits>
#include <memory>
#include <vector>

#include "core/state_dict.h"
#include "parameters.h"
#include "support/every_optimizer.h"
#include "support/sign_sgd.h"

using namespace rondo;
using namespace rondo::test;

namespace {

const std::vector<std::vector<int64_t>> kMatricesAndNumber = {
    {4, 3}, {3}, {3, 5}, {}, {2, 3, 2, 2}};

NamedTensors some_parameters(at::ScalarType dtype = at::kFloat) {
  return parameters(1, dtype, kMatricesAndNumber);
}

void give(const NamedTensors& to, uint64_t seed) {
  give_gradients(to, to, seed);
}

void spoil(const NamedTensors& params) {
  params[0].second.mutable_grad().view(-1)[1] = std::numeric_limits<float>::infinity();
  params[2].second.mutable_grad().view(-1)[0] = std::numeric_limits<float>::quiet_NaN();
}

/// All that an update may change.
StateDict bytes_of(const Optimizer& optimizer) {
  StateDict all;
  for (const NamedTensor& tensor : optimizer.captured_state()) {
    all.set(tensor.first, tensor.second.detach());
  }
  return deep_copy(all);
}

}  // namespace

TEST_SUITE_BEGIN("optim/skipped_updates");

TEST_CASE("a skipped update leaves parameters, states and counts as they are, of every optimizer") {
  for (const RegisteredOptimizer& registered : every_optimizer()) {
    for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
      CAPTURE(registered.name);
      CAPTURE(registered.keys);
      const std::unique_ptr<Optimizer> optimizer = registered.factory.make();
      const NamedTensors params = some_parameters(dtype);
      optimizer->attach(params);
      for (uint64_t seed = 0; seed < 3; ++seed) {
        give(params, seed);
        optimizer->step({}, torch::tensor(false));
      }
      const StateDict before = bytes_of(*optimizer);
      give(params, 3);
      spoil(params);
      optimizer->step({}, torch::tensor(true));
      CHECK(first_difference(bytes_of(*optimizer), before) == "");
    }
  }
}

TEST_CASE("an update that is not skipped has the bits of one that cannot be, of every optimizer") {
  for (const RegisteredOptimizer& registered : every_optimizer()) {
    CAPTURE(registered.name);
    CAPTURE(registered.keys);
    const std::unique_ptr<Optimizer> plain = registered.factory.make();
    const std::unique_ptr<Optimizer> asked = registered.factory.make();
    const NamedTensors a = some_parameters();
    const NamedTensors b = some_parameters();
    plain->attach(a);
    asked->attach(b);
    for (uint64_t seed = 0; seed < 4; ++seed) {
      give_gradients(a, b, seed);
      plain->step();
      asked->step({}, torch::tensor(false));
    }
    CHECK(first_difference(bytes_of(*plain), bytes_of(*asked)) == "");
  }
}

TEST_CASE("a user's own optimizer is skipped too") {
  SignSgd optimizer({0.1});
  const NamedTensors params = some_parameters();
  optimizer.attach(params);
  give(params, 1);
  const StateDict before = bytes_of(optimizer);
  optimizer.step({}, torch::tensor(true));
  CHECK(first_difference(bytes_of(optimizer), before) == "");
  optimizer.step({}, torch::tensor(false));
  CHECK(first_difference(bytes_of(optimizer), before) != "");
}

TEST_SUITE_END();
