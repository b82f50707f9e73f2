#include "data/streams/replay_buffer.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <cmath>
#include <vector>

#include "core/error.h"
#include "data/streams/pendulum.h"

using namespace rondo;

namespace {

/// Counts up by one; ends at `end`, by itself or by a cut. The reward is what was reached.
struct Counting final : Environment {
  explicit Counting(int64_t its_end, bool cuts) : end(its_end), is_cut(cuts) {}

  Description description() const override { return {{1}, {}, 2, 0, 0}; }

  at::Tensor reset(uint64_t) override {
    at = 0;
    return torch::zeros({1});
  }

  Step step(const at::Tensor&) override {
    ++at;
    const bool is_over = at == end;
    return {torch::full({1}, static_cast<double>(at)),
            static_cast<double>(at),
            is_over && !is_cut,
            is_over && is_cut};
  }

  int64_t end;
  bool is_cut;
  int64_t at = 0;
};

EnvironmentBatch counting(int64_t end, bool cuts, int64_t count = 1) {
  return EnvironmentBatch({[=] { return std::make_unique<Counting>(end, cuts); }, count, 1});
}

/// All transitions of `steps` steps, in the order in which they were complete.
std::vector<Sample> transitions(EnvironmentBatch environments,
                                const ReplayBuffer::Options& options,
                                int64_t steps) {
  ReplayBuffer buffer(options);
  at::Tensor seen = environments.reset();
  for (int64_t i = 0; i < steps; ++i) {
    const at::Tensor action = torch::zeros({environments.count()}, torch::kLong);
    const EnvironmentBatch::Steps step = environments.step(action);
    buffer.add(seen, action, step);
    seen = step.observation;
  }
  std::vector<Sample> samples;
  const StateDict state = buffer.ring()->save_state();
  const int64_t count = state.at("end").as_int();
  for (int64_t i = 0; i < count; ++i) {
    Sample sample;
    for (const StateDict::Item& item : state.at("samples").as_dict().items()) {
      sample.set(item.first, item.second.as_tensor()[i]);
    }
    samples.push_back(sample);
  }
  return samples;
}

double number(const Sample& sample, const char* name) {
  return sample[name].reshape({}).item<double>();
}

}  // namespace

TEST_SUITE_BEGIN("data/replay_buffer");

TEST_CASE("rewards of several steps are summed and discounted, shorter at the end of an episode") {
  ReplayBuffer::Options options;
  options.steps = 3;
  options.discount = 0.5;
  const std::vector<Sample> got = transitions(counting(4, false), options, 4);
  REQUIRE(got.size() == 4);
  CHECK(number(got[0], "observation") == 0);
  CHECK(number(got[0], "reward") == 1 + 0.5 * 2 + 0.25 * 3);
  CHECK(number(got[0], "next_observation") == 3);
  CHECK(number(got[0], "discount") == 0.125);
  CHECK(number(got[1], "reward") == 2 + 0.5 * 3 + 0.25 * 4);
  CHECK(number(got[1], "discount") == 0);  // nothing comes behind the end
  CHECK(number(got[3], "reward") == 4);
  CHECK(number(got[3], "next_observation") == 4);
}

TEST_CASE("an episode that is cut has a value behind it") {
  ReplayBuffer::Options options;
  options.steps = 2;
  options.discount = 0.5;
  const std::vector<Sample> got = transitions(counting(3, true), options, 3);
  REQUIRE(got.size() == 3);
  CHECK(number(got[1], "discount") == 0.25);
  CHECK(number(got[2], "discount") == 0.5);
  CHECK(number(got[2], "next_observation") == 3);
}

TEST_CASE("transitions of several environments do not mix") {
  ReplayBuffer::Options options;
  options.steps = 2;
  options.discount = 1.0;
  const std::vector<Sample> got = transitions(counting(5, false, 3), options, 2);
  REQUIRE(got.size() == 3);
  for (const Sample& sample : got) {
    CHECK(number(sample, "reward") == 3);
  }
}

TEST_CASE("drawn transitions have weights that correct their chances") {
  ReplayBuffer::Options options;
  options.has_priorities = true;
  options.priority_power = 1.0;
  options.weight_power = 1.0;
  ReplayBuffer buffer(options);
  EnvironmentBatch environments = counting(100, false);
  at::Tensor seen = environments.reset();
  for (int i = 0; i < 4; ++i) {
    const at::Tensor action = torch::zeros({1}, torch::kLong);
    const auto step = environments.step(action);
    buffer.add(seen, action, step);
    seen = step.observation;
  }
  buffer.set_errors(torch::arange(4), torch::tensor({1.0, 1.0, 1.0, -5.0}));
  const Batch drawn = buffer.draw(200);
  CHECK(drawn["observation"].sizes() == at::IntArrayRef({200, 1}));
  int64_t often = 0;
  for (int64_t i = 0; i < 200; ++i) {
    const bool is_wrong_one = drawn["number"][i].item<int64_t>() == 3;
    often += is_wrong_one ? 1 : 0;
    const auto weight = drawn["weight"][i].item<double>();
    CHECK(std::abs(weight - (is_wrong_one ? 0.2 : 1.0)) < 1e-4);
  }
  CHECK(often > 85);  // 125 are expected
  CHECK_THROWS_AS(buffer.set_errors(torch::arange(4), torch::ones({3})), ShapeError);
}

TEST_CASE("too few transitions are told") {
  ReplayBuffer::Options options;
  options.min_samples = 3;
  CHECK_THROWS_AS(ReplayBuffer(options).draw(1), DataError);
}

TEST_CASE("an environment batch begins new episodes, which follow from the seed") {
  const auto observations = [](uint64_t seed, int64_t count) {
    EnvironmentBatch batch({[] { return std::make_unique<Pendulum>(); }, count, seed});
    std::vector<at::Tensor> seen = {batch.reset()[0]};
    for (int i = 0; i < 230; ++i) {
      const auto steps = batch.step(torch::full({count, 1}, 0.5));
      CHECK(steps.is_cut[0].item<bool>() == (i == 199));
      const bool is_new = !torch::equal(steps.observation[0], steps.next_observation[0]);
      CHECK(is_new == (i == 199));
      seen.push_back(steps.observation[0]);
    }
    return torch::stack(seen);
  };
  CHECK(torch::equal(observations(3, 1), observations(3, 4)));
  CHECK(!torch::equal(observations(3, 1), observations(4, 1)));
  EnvironmentBatch two = counting(3, false, 2);
  CHECK_THROWS_AS(two.step(torch::zeros({3})), ShapeError);
  CHECK_THROWS_AS(EnvironmentBatch({nullptr, 1, 0}), UsageError);
}

TEST_CASE("the pendulum falls as its equations say") {
  Pendulum pendulum;
  const at::Tensor up = pendulum.place(0.0, 0.0);
  CHECK(torch::equal(up, torch::tensor({1.0F, 0.0F, 0.0F})));
  Environment::Step step = pendulum.step(torch::tensor({9.0}));  // cut to 2
  CHECK(step.reward == doctest::Approx(-0.004));
  CHECK(step.observation[2].item<double>() == doctest::Approx(0.3));  // 3 * 2 * 0.05
  CHECK(step.observation[1].item<double>() == doctest::Approx(std::sin(0.015)));
  pendulum.place(3.0, 1.0);
  step = pendulum.step(torch::tensor({0.0}));
  CHECK(step.reward == doctest::Approx(-(9.0 + 0.1)));
  CHECK(step.observation[2].item<double>() == doctest::Approx(1.0 + 0.75 * std::sin(3.0)));
  CHECK_THROWS_AS(pendulum.step(torch::zeros({2})), ShapeError);
}

TEST_SUITE_END();
