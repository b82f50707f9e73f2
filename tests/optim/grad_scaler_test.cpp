#include "optim/grad_scaler.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <limits>
#include <vector>

#include "core/error.h"

using namespace rondo;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

GradScaler::Options small() {
  GradScaler::Options options;
  options.initial = 8.0;
  options.steps_per_increase = 2;
  options.least = 2.0;
  options.most = 32.0;
  return options;
}

at::Tensor fact(bool value) {
  return torch::tensor(value);
}

double number(const at::Tensor& tensor) {
  return tensor.item<double>();
}

}  // namespace

TEST_SUITE_BEGIN("optim/grad_scaler");

TEST_CASE("a scaled loss has scaled gradients, which unscaling gives back exactly") {
  const GradScaler scaler(small(), c10::kCPU);
  const at::Tensor x = torch::tensor({1.5F, -0.1F}).requires_grad_();
  scaler.scaled((x * x).sum()).backward();
  CHECK(at::equal(x.grad(), x.detach() * 2 * 8));
  CHECK(!scaler.unscale_({x.grad()}).item<bool>());
  CHECK(at::equal(x.grad(), x.detach() * 2));
}

TEST_CASE("a loss in float16 is scaled in float32, where it does not overflow") {
  GradScaler::Options options;
  const GradScaler scaler(options, c10::kCPU);
  const at::Tensor scaled = scaler.scaled(torch::tensor(3.0F).to(at::kHalf));
  CHECK((scaled.scalar_type() == at::kFloat));
  CHECK(number(scaled) == 3 * 65536.0);
}

TEST_CASE("a gradient that is not finite is found, in any place and whatever the others are") {
  const GradScaler scaler(small(), c10::kCPU);
  const at::Tensor largest = at::full({3}, std::numeric_limits<float>::max());
  CHECK(!scaler.unscale_({largest.clone(), largest.clone(), at::empty({0})}).item<bool>());
  CHECK(!scaler.unscale_({}).item<bool>());
  for (const float bad : {kInf, -kInf, std::numeric_limits<float>::quiet_NaN()}) {
    at::Tensor spoiled = torch::zeros({4});
    spoiled[2] = bad;
    CHECK(scaler.unscale_({largest.clone(), spoiled}).item<bool>());
    CHECK(scaler.unscale_({spoiled, largest.clone()}).item<bool>());
  }
  // Infinities of both signs do not cancel.
  CHECK(scaler.unscale_({torch::tensor({kInf, -kInf})}).item<bool>());
}

TEST_CASE("the scale grows after enough good updates, up to its maximum") {
  GradScaler scaler(small(), c10::kCPU);
  const std::vector<double> expected = {8, 16, 16, 32, 32, 32};
  for (const double scale : expected) {
    CHECK(!scaler.move_on(fact(false)).item<bool>());
    CHECK(number(scaler.scale()) == scale);
  }
  CHECK(number(scaler.skipped_steps()) == 0);
}

TEST_CASE("a bad update makes the scale smaller and starts the count of good ones again") {
  GradScaler scaler(small(), c10::kCPU);
  const std::vector<bool> is_bad = {false, true, false, false, true};
  const std::vector<double> expected = {8, 4, 4, 8, 4};
  for (size_t i = 0; i < is_bad.size(); ++i) {
    scaler.move_on(fact(is_bad[i]));
    CHECK(number(scaler.scale()) == expected[i]);
  }
  CHECK(number(scaler.skipped_steps()) == 2);
}

TEST_CASE("a bad update at the least scale is told, and the scale stays there") {
  GradScaler scaler(small(), c10::kCPU);
  CHECK(!scaler.move_on(fact(true)).item<bool>());
  CHECK(!scaler.move_on(fact(true)).item<bool>());
  CHECK(number(scaler.scale()) == 2);
  CHECK(scaler.move_on(fact(true)).item<bool>());
  CHECK(number(scaler.scale()) == 2);
  CHECK(!scaler.move_on(fact(false)).item<bool>());
}

TEST_CASE("a scale without a maximum stays finite") {
  GradScaler::Options options = small();
  options.most.reset();
  options.initial = 1e38;
  GradScaler scaler(options, c10::kCPU);
  for (int i = 0; i < 20; ++i) {
    scaler.move_on(fact(false));
  }
  CHECK(number(scaler.scale()) == double{std::numeric_limits<float>::max()});
}

TEST_CASE("a constant scale stays, whatever the gradients are, and counts the bad updates") {
  GradScaler::Options options = small();
  options.is_dynamic = false;
  GradScaler scaler(options, c10::kCPU);
  for (const bool is_bad : {false, false, false, true, true, true}) {
    CHECK(!scaler.move_on(fact(is_bad)).item<bool>());
    CHECK(number(scaler.scale()) == 8);
  }
  CHECK(number(scaler.skipped_steps()) == 3);
}

TEST_CASE("a loaded scaler goes on as the saved one, in the same memory") {
  GradScaler saved(small(), c10::kCPU);
  saved.move_on(fact(true));
  saved.move_on(fact(false));
  GradScaler loaded(small(), c10::kCPU);
  const void* const place = loaded.scale().data_ptr();
  loaded.load(deep_copy(saved.state_dict()));
  CHECK(loaded.scale().data_ptr() == place);
  CHECK(first_difference(loaded.state_dict(), saved.state_dict()) == "");
  saved.move_on(fact(false));
  loaded.move_on(fact(false));
  CHECK(number(loaded.scale()) == 8);
  CHECK(first_difference(loaded.state_dict(), saved.state_dict()) == "");
}

TEST_CASE("a state of another kind is refused, and nothing is changed") {
  GradScaler scaler(small(), c10::kCPU);
  const StateDict before = deep_copy(scaler.state_dict());
  StateDict state = deep_copy(before);
  state.set("scale", at::full({}, 3.0F));
  state.erase("skipped_steps");
  CHECK_THROWS_AS(scaler.load(state), CheckpointError);
  state.set("skipped_steps", at::zeros({2}, at::kLong));
  CHECK_THROWS_AS(scaler.load(state), CheckpointError);
  state.set("skipped_steps", "none");
  CHECK_THROWS_AS(scaler.load(state), CheckpointError);
  CHECK(first_difference(scaler.state_dict(), before) == "");
}

TEST_SUITE_END();
