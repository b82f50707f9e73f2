#include "optim/schedules/plateau.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "core/error.h"
#include "core/random.h"
#include "optim/schedules/reduce_lr_on_plateau.h"

using namespace rondo;

namespace {

ReduceLROnPlateau::Options options_of(int64_t patience) {
  ReduceLROnPlateau::Options options;
  options.initial_learning_rate = 0.5;
  options.metric = "val/loss";
  options.factor = 0.1;
  options.patience = patience;
  return options;
}

/// The value after each of the observations.
std::vector<double> values_after(Scheduler& scheduler, const std::vector<double>& observed) {
  std::vector<double> values;
  for (const double one : observed) {
    scheduler.observe(one);
    values.push_back(scheduler.at(0));
  }
  return values;
}

/// `slope * i`, and noise of standard deviation 1.
std::vector<double> noisy_line(double slope, int count, uint64_t seed) {
  KeyedRandom random(seed);
  std::vector<double> values;
  for (int i = 0; i < count; ++i) {
    values.push_back(slope * i + random.normal());
  }
  return values;
}

}  // namespace

TEST_SUITE_BEGIN("optim/plateau");

TEST_CASE("a falling line is no plateau, a rising and a level one are") {
  CHECK(count_without_decrease({5, 4, 3, 2, 1}) == 0);
  CHECK(count_without_decrease({1, 2, 3, 4, 5}) == 5);
  CHECK(count_without_decrease({2, 2, 2, 2}) == 4);  // a probability of 0.5 is below 0.51
  CHECK_FALSE(is_plateau({5, 4, 3, 2, 1}));
  CHECK(is_plateau({1, 2, 3, 4, 5}));
}

TEST_CASE("the count ends where the values before are seen to have fallen") {
  // 20 values that fall, and 10 that stay: from some value backwards on, the line falls.
  std::vector<double> values;
  for (int i = 0; i < 20; ++i) {
    values.push_back(100.0 - 5.0 * i);
  }
  values.insert(values.end(), 10, 5.0);
  const size_t count = count_without_decrease(values);
  CHECK(count >= 10);
  CHECK(count < 14);
}

TEST_CASE("a single high value hides a fall from the plain count, not from the robust one") {
  std::vector<double> values;
  for (int i = 0; i < 30; ++i) {
    values.push_back(30.0 - i);
  }
  values.back() = 1000.0;
  CHECK(count_without_decrease(values) == 30);
  CHECK(count_without_decrease_robust(values) < 30);
  CHECK_FALSE(is_plateau(values));
}

TEST_CASE("a fall that noise hides from the eye is seen in enough values") {
  int seen = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    seen += is_plateau(noisy_line(-0.02, 300, seed)) ? 0 : 1;
  }
  CHECK(seen == 20);
}

TEST_CASE("ReduceLROnPlateau with a threshold does what PyTorch's does, value by value") {
  // test_reduce_lr_on_plateau1: an improvement each time, then patience 5 and threshold_mode abs.
  ReduceLROnPlateau::Options options = options_of(5);
  options.threshold_mode = "abs";
  options.threshold = 0.01;
  options.cooldown = 5;
  ReduceLROnPlateau scheduler(options);
  std::vector<double> metrics;
  for (int i = 10; i > 0; --i) {
    metrics.push_back(i);
  }
  metrics.insert(metrics.end(), 20, 1.0 - 1e-4);  // better by less than the threshold
  const std::vector<double> values = values_after(scheduler, metrics);
  for (size_t i = 0; i < values.size(); ++i) {
    CAPTURE(i);
    // Six bad values, a reduction; five of cooldown and six bad ones, another.
    const double expected = i < 15 ? 0.5 : (i < 26 ? 0.05 : 0.005);
    CHECK(values[i] == doctest::Approx(expected));
  }
}

TEST_CASE("min_lr is the least value, and a relative threshold a share of the best value") {
  ReduceLROnPlateau::Options options = options_of(0);
  options.min_lr = 0.04;
  options.threshold = 0.1;
  ReduceLROnPlateau scheduler(options);
  CHECK(values_after(scheduler, {10.0, 9.5, 8.9, 8.5}) ==
        std::vector<double>{0.5, 0.05, 0.05, 0.04});
}

TEST_CASE("the slope test reduces after as many values as it needs, when they do not fall") {
  ReduceLROnPlateau::Options options = options_of(20);
  options.test = "slope";
  ReduceLROnPlateau scheduler(options);
  std::vector<double> metrics;
  for (int i = 0; i < 40; ++i) {
    metrics.push_back(40.0 - i);
  }
  metrics.insert(metrics.end(), 60, 1.0);
  const std::vector<double> values = values_after(scheduler, metrics);
  const auto first = std::find(values.begin(), values.end(), 0.5 * 0.1);
  REQUIRE(first - values.begin() > 50);   // the window still holds a fall
  REQUIRE(first - values.begin() <= 60);  // and now none
  CHECK(first[19] == first[0]);           // it needs as many values again
  CHECK(first[20] == doctest::Approx(0.005));
  options.patience = 2;
  CHECK_THROWS_AS(ReduceLROnPlateau{options}, UsageError);
}

TEST_CASE("what was observed is state: a scheduler that takes it goes on alike") {
  for (const char* test : {"threshold", "slope"}) {
    CAPTURE(test);
    ReduceLROnPlateau::Options options = options_of(4);
    options.test = test;
    options.cooldown = 2;
    const std::vector<double> metrics = noisy_line(-0.1, 60, 3);
    ReduceLROnPlateau whole(options);
    const std::vector<double> expected = values_after(whole, metrics);
    CHECK(expected.back() < 0.5);
    for (size_t cut = 0; cut <= metrics.size(); cut += 7) {
      CAPTURE(cut);
      const auto middle = metrics.begin() + static_cast<std::ptrdiff_t>(cut);
      ReduceLROnPlateau first(options);
      std::vector<double> found = values_after(first, {metrics.begin(), middle});
      ReduceLROnPlateau second(options);
      second.load_state(first.save_state());
      const std::vector<double> rest = values_after(second, {middle, metrics.end()});
      found.insert(found.end(), rest.begin(), rest.end());
      CHECK(found == expected);
      second.load_state({});
      CHECK(second.at(0) == 0.5);
    }
  }
}

TEST_CASE("options that make no sense are errors") {
  ReduceLROnPlateau::Options options = options_of(1);
  options.metric = "";
  CHECK_THROWS_AS(ReduceLROnPlateau{options}, UsageError);
  options = options_of(-1);
  CHECK_THROWS_AS(ReduceLROnPlateau{options}, UsageError);
  options = options_of(1);
  options.test = "feeling";
  CHECK_THROWS_AS(ReduceLROnPlateau{options}, UsageError);
}

TEST_SUITE_END();
