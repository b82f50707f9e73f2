#include <doctest/doctest.h>
#include <torch/types.h>

#include "core/error.h"
#include "optim/adam.h"
#include "optim/sgd.h"
#include "parameters.h"
#include "support/every_optimizer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

const AdamW::Options kOptions = {
    2e-3, {0.9, 0.99}, 1e-8, 0.1, true, {{{"p1"}, "slow", {{"lr", 1e-4}}}}};

/// A copy that shares no memory, as a file gives it back: floats are tensors there already.
StateDict copy_of(const StateDict& state);

StateValue copy_of(const StateValue& value) {
  if (value.is_tensor()) {
    return value.as_tensor().clone();
  }
  if (value.is_dict()) {
    return copy_of(value.as_dict());
  }
  if (const auto* list = std::get_if<StateList>(&value.variant())) {
    StateList copied;
    for (const StateValue& element : *list) {
      copied.push_back(copy_of(element));
    }
    return copied;
  }
  return value;
}

StateDict copy_of(const StateDict& state) {
  StateDict copied;
  for (const auto& [name, value] : state.items()) {
    copied.set(name, copy_of(value));
  }
  return copied;
}

void train(Optimizer& optimizer, const NamedTensors& params, int from, int to) {
  for (int step = from; step < to; ++step) {
    give_gradients(params, params, step);
    optimizer.step();
  }
}

/// An optimizer with some updates behind it.
struct Trained {
  explicit Trained(AdamW::Options options = kOptions) : optimizer(options) {
    optimizer.attach(params);
    train(optimizer, params, 0, 5);
  }

  NamedTensors params = parameters(4, at::kFloat, {{3, 5}, {17}, {2, 2}});
  AdamW optimizer;
};

}  // namespace

TEST_SUITE_BEGIN("optim/optimizer_state");

TEST_CASE("a run that loads its state goes on with the same bits") {
  Trained a;
  const StateDict saved = copy_of(a.optimizer.state_dict());
  const NamedTensors params = parameters(9, at::kFloat, {{3, 5}, {17}, {2, 2}});
  {
    const at::NoGradGuard no_grad;
    for (size_t i = 0; i < params.size(); ++i) {
      params[i].second.copy_(a.params[i].second);
    }
  }
  AdamW::Options other = kOptions;
  other.lr = 1.0;  // the checkpoint's counts
  AdamW b(other);
  b.attach(params);
  b.load(saved);
  CHECK(first_difference(b.state_dict(), saved) == "");
  train(a.optimizer, a.params, 5, 10);
  train(b, params, 5, 10);
  CHECK(first_different(a.params, params) == "");
  CHECK(first_difference(a.optimizer.state_dict(), b.state_dict()) == "");
}

TEST_CASE("so does one with any registered optimizer") {
  const std::vector<std::vector<int64_t>> shapes = {{3, 5}, {17}, {2, 3, 2, 2}};
  for (const RegisteredOptimizer& one : every_optimizer()) {
    CAPTURE(one.name);
    CAPTURE(one.keys);
    const NamedTensors params = parameters(4, at::kFloat, shapes);
    const auto whole = one.factory.make();
    whole->attach(params);
    train(*whole, params, 0, 5);
    const StateDict saved = copy_of(whole->state_dict());
    NamedTensors later;
    for (const NamedTensor& parameter : params) {
      later.emplace_back(parameter.first, parameter.second.detach().clone().requires_grad_());
    }
    const auto resumed = one.factory.make();
    resumed->attach(later);
    resumed->load(saved);
    train(*whole, params, 5, 10);
    train(*resumed, later, 5, 10);
    CHECK(first_different(params, later) == "");
    CHECK(first_difference(whole->state_dict(), resumed->state_dict()) == "");
  }
}

TEST_CASE("loading writes into the tensors that are there") {
  Trained a;
  Trained b;
  const NamedTensors before = b.optimizer.captured_state();
  train(a.optimizer, a.params, 5, 7);
  b.optimizer.load(copy_of(a.optimizer.state_dict()));
  const NamedTensors after = b.optimizer.captured_state();
  REQUIRE(before.size() == after.size());
  for (size_t i = 0; i < before.size(); ++i) {
    CHECK(before[i].second.is_same(after[i].second));
  }
}

TEST_CASE("state is saved by parameter, numbers by group") {
  const Trained a;
  const StateDict saved = a.optimizer.state_dict();
  CHECK(saved.at("state/p0/step").as_double() == 5.0);
  CHECK(saved.at("state/p2/exp_avg").as_tensor().sizes() == at::IntArrayRef({2, 2}));
  const StateList& groups = saved.at("groups").as_list();
  REQUIRE(groups.size() == 2);
  CHECK(groups[1].as_dict().at("tag").as_string() == "slow");
  CHECK(groups[1].as_dict().at("lr").as_double() == 1e-4);
}

TEST_CASE("a state that does not fit is refused whole") {
  Trained a;
  const StateDict good = copy_of(a.optimizer.state_dict());
  train(a.optimizer, a.params, 5, 6);
  const StateDict now = copy_of(a.optimizer.state_dict());
  const auto refuses = [&](const char* what, const std::function<void(StateDict&)>& spoil) {
    CAPTURE(what);
    StateDict bad = copy_of(good);
    spoil(bad);
    CHECK_THROWS_AS(a.optimizer.load(bad), CheckpointError);
    CHECK(first_difference(a.optimizer.state_dict(), now) == "");
  };
  const auto groups = [](StateDict& s) -> StateList& {
    return const_cast<StateList&>(s.at("groups").as_list());
  };
  refuses("no state", [](StateDict& s) { s.erase("state"); });
  refuses("no groups", [](StateDict& s) { s.erase("groups"); });
  refuses("a group less", [&](StateDict& s) { groups(s).pop_back(); });
  refuses("another tag", [&](StateDict& s) { groups(s)[1].as_dict().set("tag", "fast"); });
  refuses("a number less", [&](StateDict& s) { groups(s)[1].as_dict().erase("eps"); });
  refuses("not a number", [&](StateDict& s) { groups(s)[1].as_dict().set("eps", "small"); });
  refuses("a parameter less", [](StateDict& s) { s.find("state")->as_dict().erase("p2"); });
  refuses("another parameter", [](StateDict& s) {
    s.find("state")->as_dict().erase("p2");
    s.find("state")->as_dict().set("p3", StateDict());
  });
  refuses("a tensor less", [](StateDict& s) { s.find("state/p2")->as_dict().erase("exp_avg"); });
  refuses("another shape",
          [](StateDict& s) { s.find("state/p2")->as_dict().set("exp_avg", at::zeros({4})); });
  refuses("another dtype", [](StateDict& s) {
    s.find("state/p2")->as_dict().set("exp_avg", at::zeros({2, 2}, at::kDouble));
  });
  refuses("not a tensor", [](StateDict& s) { s.find("state/p2")->as_dict().set("exp_avg", 1.0); });
}

TEST_CASE("the state of another optimizer is refused") {
  Trained a;
  Sgd sgd({0.1, 0.9});
  sgd.attach(a.params);
  CHECK_THROWS_AS(sgd.load(a.optimizer.state_dict()), CheckpointError);
}

TEST_SUITE_END();
