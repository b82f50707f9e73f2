#include "sparsity/masks.h"

#include <doctest/doctest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>

#include "core/error.h"
#include "core/named_tensor.h"
#include "optim/adam.h"
#include "sparsity/layers.h"

using namespace rondo;
using rondo::test::layers;

namespace {

int64_t zeros_in(const at::Tensor& tensor) {
  return (tensor == 0).sum().item<int64_t>();
}

/// The bits at the pruned places: those of +0 and nothing else.
bool is_exactly_zero(const at::Tensor& weight, const at::Tensor& pruned) {
  const at::Tensor held = weight.detach().masked_select(pruned);
  return equal_bytes(held, at::zeros_like(held));
}

/// True where the mask prunes.
at::Tensor pruned_by(const SparsityMasks& mask, const std::string& name) {
  return mask.state_dict().at("masks/" + name).as_tensor().logical_not();
}

}  // namespace

TEST_SUITE_BEGIN("sparsity/masks");

TEST_CASE("exactly the rounded share of each weight is zero, the smallest magnitudes") {
  for (const double sparsity : {0.1, 0.5, 0.75, 0.99}) {
    CAPTURE(sparsity);
    const NamedTensors params = layers();
    const at::Tensor before = params[0].second.detach().clone();
    SparsityMasks mask({sparsity});
    mask.apply(params);
    const at::Tensor& after = params[0].second;
    CHECK(zeros_in(after) == std::llround(sparsity * 63));
    CHECK(zeros_in(params[2].second) == std::llround(sparsity * 21));
    CHECK(zeros_in(params[1].second) == 0);
    const at::Tensor kept = after != 0;
    CHECK(at::equal(after.masked_select(kept), before.masked_select(kept)));
    CHECK(before.abs().masked_select(kept).min().item<float>() >=
          before.abs().masked_select(~kept).max().item<float>());
  }
}

TEST_CASE("of equal magnitudes the first are kept") {
  const NamedTensors params = {{"w", at::tensor({1.0, -1.0, 2.0, 1.0, -1.0, 0.5}).view({2, 3})}};
  SparsityMasks mask({0.5});
  mask.apply(params);
  CHECK(at::equal(params[0].second, at::tensor({1.0, -1.0, 2.0, 0.0, 0.0, 0.0}).view({2, 3})));
}

TEST_CASE("globs choose the parameters, of any shape") {
  const NamedTensors params = layers();
  SparsityMasks mask({0.5, {"*.bias", "out.*"}});
  mask.apply(params);
  CHECK(zeros_in(params[0].second) == 0);
  CHECK(zeros_in(params[1].second) == 4);
  CHECK(zeros_in(params[2].second) == 11);
}

TEST_CASE("sparsity 0 leaves everything as it is") {
  const NamedTensors params = {{"bias", at::ones({3})}};
  SparsityMasks mask({});
  mask.apply(params);
  mask.mask_gradients();
  mask.after_update();
  CHECK(mask.captured_state().empty());
}

TEST_CASE("what is pruned stays exactly +0 through updates, and the optimizer's state with it") {
  const NamedTensors params = layers();
  SparsityMasks mask({0.6});
  mask.apply(params);
  AdamW optimizer({0.1});
  optimizer.attach(params);
  for (int step = 0; step < 10; ++step) {
    for (const auto& parameter : params) {
      parameter.second.mutable_grad() = torch::randn(parameter.second.sizes());
    }
    mask.mask_gradients();
    optimizer.step();
    mask.after_update();
    CHECK(is_exactly_zero(params[0].second, pruned_by(mask, "in.weight")));
  }
  Parameter& first = optimizer.groups()[0].params[0];
  CHECK(is_exactly_zero(first.state("exp_avg"), pruned_by(mask, "in.weight")));
  CHECK(is_exactly_zero(first.state("exp_avg_sq"), pruned_by(mask, "in.weight")));
}

TEST_CASE("zero is restored whatever an update left: the other sign, infinity, NaN") {
  const NamedTensors params = {
      {"w", at::tensor({1.0, 2.0, 3.0, 4.0, 0.1, 0.2, 0.3, 0.4}).view({2, 4})}};
  SparsityMasks mask({0.5});
  mask.apply(params);
  params[0].second.copy_(
      at::tensor({1.0, 2.0, 3.0, 4.0, -0.0, -INFINITY + 0.0, double(NAN), -5.0}).view({2, 4}));
  mask.after_update();
  CHECK(is_exactly_zero(params[0].second, pruned_by(mask, "w")));
}

TEST_CASE("masks are saved and loaded in place, and pruned at once") {
  const NamedTensors a = layers();
  SparsityMasks saved({0.5});
  saved.apply(a);
  NamedTensors b = layers();
  b[0].second.detach().mul_(-1.0).add_(3.0);
  SparsityMasks loaded({0.5});
  loaded.apply(b);
  const auto before = loaded.captured_state();
  CHECK_FALSE(at::equal(before[0].second, saved.captured_state()[0].second));
  loaded.load(saved.state_dict());
  CHECK(first_difference(loaded.state_dict(), saved.state_dict()) == "");
  CHECK(loaded.captured_state()[0].second.is_same(before[0].second));
  CHECK(is_exactly_zero(b[0].second, pruned_by(saved, "in.weight")));
}

TEST_CASE("an optimizer's update masks its own weights, and no others") {
  const NamedTensors params = layers();
  const int first = 0;
  const int second = 0;
  SparsityMasks masks({0.5});
  masks.apply(params, [&](const at::Tensor& weight) {
    return weight.is_same(params[0].second) ? &first : &second;
  });
  CHECK(masks.groups().size() == 2);
  for (const auto& parameter : params) {
    parameter.second.mutable_grad() = at::ones(parameter.second.sizes());
    parameter.second.detach().fill_(1.0);
  }
  masks.mask_gradients(&first);
  masks.after_update(&first);
  CHECK(zeros_in(params[0].second.grad()) == 32);
  CHECK(zeros_in(params[0].second) == 32);
  CHECK(zeros_in(params[2].second.grad()) == 0);
  CHECK(zeros_in(params[2].second) == 0);
  masks.after_update(&second);
  CHECK(zeros_in(params[2].second) == 11);
}

TEST_CASE("a state that does not fit is refused whole") {
  const NamedTensors params = layers();
  SparsityMasks mask({0.5});
  mask.apply(params);
  const StateDict before = mask.state_dict();
  const at::Tensor other = pruned_by(mask, "in.weight");
  const auto state = [](NamedTensors masks) {
    StateDict all;
    for (auto& [name, tensor] : masks) {
      all.set(name, tensor);
    }
    return StateDict{{"masks", all}};
  };
  CHECK_THROWS_AS(mask.load({}), CheckpointError);
  CHECK_THROWS_AS(mask.load(state({{"in.weight", other}})), CheckpointError);
  CHECK_THROWS_AS(mask.load(state({{"in.weight", other}, {"else", other}})), CheckpointError);
  CHECK_THROWS_AS(mask.load(state({{"in.weight", other}, {"out.weight", other}})), CheckpointError);
  CHECK_THROWS_AS(mask.load(state({{"in.weight", other}, {"out.weight", at::ones({3, 7})}})),
                  CheckpointError);
  CHECK(first_difference(mask.state_dict(), before) == "");
}

TEST_CASE("weights of half and double width are masked alike, others refused") {
  for (const auto dtype : {at::kBFloat16, at::kHalf, at::kDouble}) {
    const NamedTensors params = {{"w", at::arange(-5, 5).to(dtype).view({2, 5})}};
    SparsityMasks mask({0.5});
    mask.apply(params);
    CHECK(zeros_in(params[0].second) == 5);
    CHECK(params[0].second[0][0].item<double>() == -5.0);
    CHECK(is_exactly_zero(params[0].second, pruned_by(mask, "w")));
  }
  SparsityMasks mask({0.5});
  CHECK_THROWS_AS(mask.apply({{"w", at::ones({2, 2}, at::kLong)}}), NotSupportedError);
}

TEST_CASE("a share out of range, globs that match nothing and a second apply are errors") {
  CHECK_THROWS_AS(SparsityMasks({1.0}), UsageError);
  CHECK_THROWS_AS(SparsityMasks({-0.1}), UsageError);
  CHECK_THROWS_AS(SparsityMasks({std::nan("")}), UsageError);
  SparsityMasks unmatched({0.5, {"*.wieght"}});
  CHECK_THROWS_AS(unmatched.apply(layers()), UsageError);
  SparsityMasks twice({0.5});
  twice.apply(layers());
  CHECK_THROWS_AS(twice.apply(layers()), UsageError);
}

TEST_SUITE_END();
