#include "sparsity/algorithms.h"

#include <doctest/doctest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/random.h"
#include "core/state_dict.h"
#include "optim/adam.h"
#include "sparsity/layers.h"
#include "sparsity/masks.h"

using namespace rondo;
using rondo::test::layers;

namespace {

/// True for the `count` largest scores among `candidates`, found one by one.
at::Tensor largest_of(const at::Tensor& scores, const at::Tensor& candidates, int64_t count) {
  at::Tensor left = scores.masked_fill(candidates.logical_not(), -1.0).flatten().clone();
  at::Tensor found = at::zeros(left.sizes(), at::kBool);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t place = left.argmax().item<int64_t>();
    found[place] = true;
    left[place] = -2.0;
  }
  return found.view(scores.sizes());
}

MaskedWeights example(int64_t kept, double progress) {
  torch::manual_seed(5);
  MaskedWeights weights;
  weights.weight = torch::randn({6, 8});
  weights.gradient = torch::randn({6, 8});
  weights.mask = at::rand({6, 8}).lt(0.5);
  weights.weight.masked_fill_(weights.mask.logical_not(), 0.0);
  weights.kept = at::tensor(kept, at::kLong);
  weights.progress = at::tensor(progress, at::kDouble);
  weights.key = at::tensor(int64_t{1}, at::kLong);
  return weights;
}

int64_t count(const at::Tensor& mask) {
  return mask.sum().item<int64_t>();
}

SparsityOptions options_of(const Factory<SparsityAlgorithm>& algorithm) {
  SparsityOptions options;
  options.algorithm = algorithm;
  options.sparsity = {0.2, 0.8, "polynomial"};
  return options;
}

/// Trains with noise for gradients, changing the masks ten times.
template <class Check>
void train(const SparsityOptions& options, const Check& check) {
  const NamedTensors params = layers();
  SparsityMasks masks(options);
  masks.apply(params);
  AdamW optimizer({0.05});
  optimizer.attach(params);
  for (const Parameter& parameter : optimizer.groups()[0].params) {
    masks.add_states(parameter.value, parameter.states(), parameter.value);
  }
  for (int update = 1; update <= 20; ++update) {
    const double done = update / 20.0;
    MaskGroup& group = masks.groups()[0];
    update % 2 == 0 ? group.aim(done, KeyedRandom(1, static_cast<uint64_t>(update))) : group.rest();
    for (const auto& parameter : params) {
      parameter.second.mutable_grad() = torch::randn(parameter.second.sizes());
    }
    masks.mask_gradients();
    optimizer.step();
    masks.after_update();
    if (update % 2 == 0) {
      check(masks, optimizer, options.sparsity.at(done));
    }
  }
}

bool is_zero_where_pruned(const at::Tensor& tensor, const Mask& mask) {
  const at::Tensor held = tensor.detach().masked_select(mask.kept().logical_not());
  return equal_bytes(held, at::zeros_like(held));
}

}  // namespace

TEST_SUITE_BEGIN("sparsity/algorithms");

TEST_CASE("top_mask takes exactly so many, of equal scores the first") {
  const at::Tensor scores = at::tensor({2.0, 1.0, 2.0, 2.0, 0.5, 1.0}).view({2, 3});
  const auto top = [&](int64_t n) { return top_mask(scores, at::tensor(n, at::kLong)).flatten(); };
  CHECK(count(top(0)) == 0);
  CHECK(count(top(6)) == 6);
  CHECK(at::equal(top(2), at::tensor({1, 0, 1, 0, 0, 0}).to(at::kBool)));
  CHECK(at::equal(top(4), at::tensor({1, 1, 1, 1, 0, 0}).to(at::kBool)));
}

TEST_CASE("GMP keeps the largest of those that are left, and none comes back") {
  const MaskedWeights weights = example(10, 0.5);
  const at::Tensor mask = GradualMagnitudePruning().next_mask(weights);
  CHECK(at::equal(mask, largest_of(weights.weight.abs(), weights.mask, 10)));
  const MaskedWeights more = example(48, 0.5);
  CHECK(at::equal(GradualMagnitudePruning().next_mask(more), more.mask));
}

TEST_CASE("RigL drops the smallest weights and grows where the dense gradient is largest") {
  for (const std::string decay : {"constant", "cosine"}) {
    CAPTURE(decay);
    const MaskedWeights weights = example(20, 0.25);
    const at::Tensor mask = RigL({0.4, decay}).next_mask(weights);
    const double share = decay == "cosine" ? 0.4 * (1 + std::cos(std::acos(-1.0) * 0.25)) / 2 : 0.4;
    const int64_t stay = 20 - std::lround(share * 20);
    const at::Tensor kept = largest_of(weights.weight.abs(), weights.mask, stay);
    const at::Tensor expected =
        kept.logical_or(largest_of(weights.gradient.abs(), kept.logical_not(), 20 - stay));
    CHECK(count(mask) == 20);
    CHECK(at::equal(mask, expected));
  }
}

TEST_CASE("numbers of a key are uniform and follow from it alone") {
  constexpr int64_t kNumbers = 100000;
  KeyedRandom keys(7);
  const at::Tensor key = at::tensor(static_cast<int64_t>(keys.next()), at::kLong);
  const at::Tensor numbers = keyed_uniform(key, {kNumbers / 100, 100});
  CHECK((numbers.scalar_type() == at::kDouble));
  CHECK(equal_bytes(numbers, keyed_uniform(key, {kNumbers / 100, 100})));
  CHECK(numbers.min().item<double>() >= 0.0);
  CHECK(numbers.max().item<double>() < 1.0);
  CHECK(numbers.mean().item<double>() == doctest::Approx(0.5).epsilon(0.01));
  CHECK(numbers.var().item<double>() == doctest::Approx(1.0 / 12).epsilon(0.02));
  // 1000 in each hundredth, give or take five standard deviations.
  CHECK((at::histc(numbers, 100, 0, 1) - kNumbers / 100).abs().max().item<double>() < 5 * 32);
  const at::Tensor others =
      keyed_uniform(at::tensor(static_cast<int64_t>(keys.next()), at::kLong), numbers.sizes());
  const at::Tensor both = (numbers - 0.5).mul(others - 0.5);
  CHECK(std::abs(both.mean().item<double>()) < 5.0 / 12 / std::sqrt(double{kNumbers}));
}

TEST_CASE("SET drops the smallest weights and grows anywhere") {
  MaskedWeights weights = example(20, 0.25);
  SparseEvolutionaryTraining set({});
  const at::Tensor kept = largest_of(weights.weight.abs(), weights.mask, 14);
  std::set<double> grown;  // the sums of the kept places
  for (int draw = 0; draw < 4; ++draw) {
    weights.key.fill_(draw);
    const at::Tensor mask = set.next_mask(weights);
    CHECK(equal_bytes(mask, set.next_mask(weights)));
    CHECK(count(mask) == 20);
    CHECK(at::equal(mask.logical_and(kept), kept));
    const at::Tensor places = at::arange(48, at::kDouble);
    grown.insert(mask.to(at::kDouble).flatten().dot(places).item<double>());
  }
  CHECK(grown.size() > 1);
}

TEST_CASE("each algorithm follows the schedule, and pruned weights and their states are zero") {
  for (const Factory<SparsityAlgorithm>& algorithm :
       {use<GradualMagnitudePruning>(), use<SparseEvolutionaryTraining>(), use<RigL>()}) {
    for (const std::string init : {"topk", "random"}) {
      CAPTURE(algorithm.name() + " " + init);
      SparsityOptions options = options_of(algorithm);
      options.init = init;
      train(options, [](const SparsityMasks& masks, const AdamW& optimizer, double share) {
        for (const Mask& mask : masks.groups()[0].masks()) {
          const int64_t elements = mask.weight().numel();
          CHECK(elements - count(mask.kept()) ==
                std::llround(share * static_cast<double>(elements)));
          CHECK(is_zero_where_pruned(mask.weight(), mask));
          for (const Parameter& parameter : optimizer.groups()[0].params) {
            if (parameter.name == mask.name()) {
              for (const NamedTensor& state : parameter.states()) {
                CHECK((state.second.dim() == 0 || is_zero_where_pruned(state.second, mask)));
              }
            }
          }
        }
      });
    }
  }
}

TEST_CASE("a global distribution has the share over all parameters of the group") {
  for (const Factory<SparsityAlgorithm>& algorithm :
       {use<GradualMagnitudePruning>(), use<RigL>()}) {
    SparsityOptions options = options_of(algorithm);
    options.distribution = "global";
    std::set<int64_t> zeros_of_first;
    train(options, [&](const SparsityMasks& masks, const AdamW&, double share) {
      int64_t zeros = 0;
      for (const Mask& mask : masks.groups()[0].masks()) {
        zeros += mask.weight().numel() - count(mask.kept());
        CHECK(is_zero_where_pruned(mask.weight(), mask));
      }
      CHECK(zeros == std::llround(share * 84));
      zeros_of_first.insert(63 - count(masks.groups()[0].masks()[0].kept()) -
                            std::llround(share * 63));
    });
    CHECK(zeros_of_first != std::set<int64_t>{0});
  }
}

TEST_CASE("weights that grow begin at zero") {
  const NamedTensors params = layers();
  SparsityOptions options;
  options.algorithm = use<RigL>({0.5, "constant"});
  options.sparsity = 0.5;
  SparsityMasks masks(options);
  masks.apply(params);
  const Mask& mask = masks.groups()[0].masks()[0];
  const at::Tensor before = mask.kept();
  params[0].second.mutable_grad() = torch::randn({7, 9});
  const at::Tensor gradient = params[0].second.grad().clone();
  masks.groups()[0].aim(0.5, KeyedRandom(1));
  masks.mask_gradients();
  CHECK(is_zero_where_pruned(params[0].second.grad(), mask));
  masks.after_update();
  const at::Tensor grown = mask.kept().logical_and(before.logical_not());
  CHECK(count(grown) > 0);
  CHECK(params[0].second.detach().masked_select(grown).eq(0).all().item<bool>());
  const at::Tensor never = before.logical_or(mask.kept()).logical_not();
  CHECK(gradient.abs().masked_select(grown).min().item<float>() >=
        gradient.abs().masked_select(never).max().item<float>());
}

TEST_CASE("the first mask can be what is not zero already") {
  const NamedTensors params = {{"w", at::tensor({1.0, 0.0, 2.0, 0.0, 0.0, 3.0}).view({2, 3})}};
  SparsityOptions options;
  options.init = "from_zeros";
  SparsityMasks masks(options);
  masks.apply(params);
  CHECK(masks.sparsity() == doctest::Approx(0.5));
}

TEST_CASE("groups have options of their own, the first that picks a parameter has it") {
  const NamedTensors params = layers();
  SparsityOptions options = {0.5};
  options.groups = {{0.25, {"out.*"}}, {0.75, {"*.bias", "out.weight"}}};
  SparsityMasks masks(options);
  masks.apply(params);
  const auto zeros = [&](size_t i) { return count(params[i].second.detach().eq(0)); };
  CHECK(zeros(0) == std::llround(0.5 * 63));
  CHECK(zeros(1) == std::llround(0.75 * 7));
  CHECK(zeros(2) == std::llround(0.25 * 21));
}

TEST_CASE("an algorithm that cannot follow the schedule, or options out of range, are errors") {
  SparsityOptions options = options_of(use<StaticSparsity>());
  CHECK_THROWS_AS(SparsityMasks{options}, UsageError);
  options.algorithm = use<GradualMagnitudePruning>();
  options.sparsity = {0.8, 0.2, "linear"};
  CHECK_THROWS_AS(SparsityMasks{options}, UsageError);
  options.sparsity = {0.2, 0.8, "cubic"};
  CHECK_THROWS_AS(SparsityMasks{options}, UsageError);
  options.sparsity = {0.2, 1.0, "linear"};
  CHECK_THROWS_AS(SparsityMasks{options}, UsageError);
  options.sparsity = 0.5;
  options.init = "largest";
  CHECK_THROWS_AS(SparsityMasks{options}, UsageError);
  options.init = "topk";
  options.distribution = "uneven";
  CHECK_THROWS_AS(SparsityMasks{options}, UsageError);
  CHECK_THROWS_AS(RigL({1.0, "cosine"}), UsageError);
  CHECK_THROWS_AS(SparseEvolutionaryTraining({0.5, "linear"}), UsageError);
}

TEST_CASE("a mask of another kind is refused, naming the algorithm") {
  class Wrong final : public SparsityAlgorithm {
   public:
    at::Tensor next_mask(const MaskedWeights& weights) override { return weights.weight; }
  };

  SparsityMasks masks(options_of(use<Wrong>()));
  masks.apply(layers());
  masks.groups()[0].aim(1.0, KeyedRandom(1));
  try {
    masks.after_update();
    FAIL("nothing was thrown");
  } catch (const ShapeError& error) {
    CHECK(std::string(error.what()).find("Wrong") != std::string::npos);
  }
}

TEST_CASE("a schedule goes from its first value to its last, by the published formulas") {
  const SparsitySchedule linear(0.2, 0.8, "linear");
  const SparsitySchedule cosine(0.2, 0.8, "cosine");
  const SparsitySchedule cubic(0.0, 0.9, "polynomial");
  CHECK(linear.at(0.25) == doctest::Approx(0.35));
  CHECK(cosine.at(0.5) == doctest::Approx(0.5));
  CHECK(cosine.at(0.25) == doctest::Approx(0.8 - 0.6 * (1 + std::sqrt(0.5)) / 2));
  CHECK(cubic.at(0.5) == doctest::Approx(0.9 - 0.9 * 0.125));
  CHECK(SparsitySchedule(0.7).at(0.3) == 0.7);
  for (const SparsitySchedule& schedule : {linear, cosine}) {
    CHECK(schedule.at(0.0) == doctest::Approx(0.2));
    CHECK(schedule.at(1.0) == 0.8);
  }
}

TEST_SUITE_END();
