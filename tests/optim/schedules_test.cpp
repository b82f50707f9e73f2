// The formulas of schedules, against published values.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "optim/schedulers.h"

using namespace rondo;

namespace {

constexpr double kScheduleRounding = 2e-15;  // a few operations on numbers near 1

/// The values at `at` of a schedule in a run of 100 updates, 10 an epoch.
template <class T>
std::vector<double> values(const typename T::Options& options, const std::vector<int64_t>& at) {
  T scheduler(options);
  scheduler.resolve({100, 10});
  std::vector<double> read;
  for (const int64_t updates : at) {
    read.push_back(scheduler.value(static_cast<double>(updates)));
  }
  return read;
}

void check_near(const std::vector<double>& found, const std::vector<double>& expected) {
  REQUIRE(found.size() == expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(found[i] - expected[i]) <=
          kScheduleRounding * std::max(1.0, std::abs(expected[i])));
  }
}

}  // namespace

TEST_SUITE_BEGIN("optim/schedules");

TEST_CASE("ConstantLR is always its value") {
  CHECK(values<ConstantLR>({0.3}, {0, 50, 1000}) == std::vector<double>{0.3, 0.3, 0.3});
  CHECK(values<ConstantLR>({0.3, 10}, {0, 9, 10, 11}) == std::vector<double>{0.3, 0.3, 0.3, 0.3});
}

TEST_CASE("C11: LinearLR is a line at 0, in the middle, at the end and beyond") {
  check_near(values<LinearLR>({1.0, 0.5, 10}, {0, 5, 9, 10, 11, 1000}),
             {1.0, 0.75, 0.55, 0.5, 0.5, 0.5});
  CHECK(values<LinearLR>({0.7, 0.1, 3}, {3}) == std::vector<double>{0.1});  // exactly
}

TEST_CASE("C11: CosineDecayLR is half a cosine at 0, in the middle, at the end and beyond") {
  check_near(values<CosineDecayLR>({1.0, 0.2, 8}, {0, 2, 4, 8, 9, 1000}),
             {1.0, 0.2 + 0.4 * (1.0 + std::sqrt(0.5)), 0.6, 0.2, 0.2, 0.2});
}

TEST_CASE("C11: StepLR is a staircase at 0, in the middle and far on") {
  check_near(values<StepLR>({1.0, 3, 0.5}, {0, 2, 3, 5, 6, 30}),
             {1.0, 1.0, 0.5, 0.5, 0.25, std::pow(0.5, 10)});
}

TEST_CASE("C13: StepLR at exactly one step has been multiplied by gamma once") {
  CHECK(values<StepLR>({1.0, 7, 0.1}, {7}) == std::vector<double>{0.1});
}

TEST_CASE("StepLR with an end stays at what it was there") {
  check_near(values<StepLR>({1.0, 3, 0.5, Time(6)}, {5, 6, 9, 30}), {0.5, 0.25, 0.25, 0.25});
}

TEST_CASE("C15: a linear warm-up is 0 at 0 and its goal at its end") {
  CHECK(values<LinearLR>({0.0, 0.8, 5}, {0, 5}) == std::vector<double>{0.0, 0.8});
}

TEST_CASE("C11: PolynomialLR is a power of what is left, and with cycle never ends") {
  check_near(values<PolynomialLR>({1.0, 0.2, 10, 2.0}, {0, 5, 10, 1000}), {1.0, 0.4, 0.2, 0.2});
  check_near(values<PolynomialLR>({1.0, 0.0, 10, 1.0}, {3}), values<LinearLR>({1.0, 0.0, 10}, {3}));
  // tf.keras' PolynomialDecay: the decay steps become the next multiple.
  check_near(values<PolynomialLR>({1.0, 0.0, 10, 1.0, true}, {10, 15, 20, 25}),
             {0.0, 0.25, 0.0, 1.0 - 25.0 / 30.0});
}

TEST_CASE("C11: ExponentialLR decays by its rate over its period, smoothly or at once") {
  check_near(values<ExponentialLR>({2.0, 0.25, 10}, {0, 5, 10, 20}), {2.0, 1.0, 0.5, 0.125});
  check_near(values<ExponentialLR>({2.0, 0.25, 10, true}, {0, 9, 10, 19, 20}),
             {2.0, 2.0, 0.5, 0.5, 0.125});
}

TEST_CASE("C11: InverseExponentialTimeDecayLR divides by 1 + rate t^e/T, for ever") {
  check_near(values<InverseExponentialTimeDecayLR>({1.0, 0.5, 10}, {0, 5, 10, 20, 1980}),
             {1.0, 0.8, 1.0 / 1.5, 0.5, 0.01});
  check_near(values<InverseExponentialTimeDecayLR>({1.0, 0.5, 10, 2.0}, {10}), {1.0 / 6.0});
  check_near(values<InverseExponentialTimeDecayLR>({1.0, 0.5, 10, 1.0, true}, {9, 10, 19}),
             {1.0, 1.0 / 1.5, 1.0 / 1.5});
}

TEST_CASE("C11: InverseSquareRootDecayLR divides by the root of the time, after its first steps") {
  check_near(values<InverseSquareRootDecayLR>({0.5, 4.0, 4}, {0, 3, 4, 9, 16, 64, 40000}),
             {1.0, 1.0, 1.0, 2.0 / 3.0, 0.5, 0.25, 0.01});
}

TEST_CASE("MultiplicativeLR is multiplied with each update") {
  check_near(values<MultiplicativeLR>({0.5, 0.5}, {0, 1, 2, 10}),
             {0.5, 0.25, 0.125, std::pow(0.5, 11)});
}

TEST_CASE("C11: MultiStepLR is multiplied at each milestone") {
  // The example of PyTorch's page: lr 0.05 at first, 0.005 from 30 on, 0.0005 from 80 on.
  check_near(values<MultiStepLR>({0.05, {30, 80}, 0.1}, {0, 29, 30, 79, 80, 1000}),
             {0.05, 0.05, 0.005, 0.005, 0.0005, 0.0005});
  check_near(values<MultiStepLR>({1.0, {"3ep", 0.5}, 0.1}, {29, 30, 50}), {1.0, 0.1, 0.01});
}

TEST_CASE("PiecewiseConstantLR has a value up to each milestone") {
  CHECK(values<PiecewiseConstantLR>({{0.1, 0.5, 0.2}, {10, 20}}, {0, 9, 10, 19, 20, 99}) ==
        std::vector<double>{0.1, 0.1, 0.5, 0.5, 0.2, 0.2});
  CHECK_THROWS_AS(PiecewiseConstantLR({{0.1, 0.5}, {10, 20}}), UsageError);
}

TEST_CASE("CosineAnnealingLR rises again after T_max") {
  check_near(values<CosineAnnealingLR>({1.0, 10, 0.2}, {0, 5, 10, 15, 20}),
             {1.0, 0.6, 0.2, 0.6, 1.0});
}

TEST_CASE("C14: warm restarts begin again at T_0, and T_mult 2 doubles the cycle") {
  check_near(values<CosineAnnealingWarmRestarts>({1.0, 10, 1.0, 0.2}, {0, 5, 10, 15, 20, 1005}),
             {1.0, 0.6, 1.0, 0.6, 1.0, 0.6});
  check_near(values<CosineAnnealingWarmRestarts>({1.0, 10, 2.0}, {5, 10, 20, 30, 50, 70}),
             {0.5, 1.0, 0.5, 1.0, 0.5, 1.0});
  // Lengths 10, 15, 22: rounded down.
  check_near(values<CosineAnnealingWarmRestarts>({1.0, 10, 1.5}, {10, 25, 36, 47}),
             {1.0, 1.0, 0.5, 1.0});
}

TEST_CASE("CyclicLR gives the values of PyTorch's own tests, in its three modes") {
  CyclicLR::Options options;
  options.base_lr = 1.0;
  options.max_lr = 5.0;
  options.step_size_up = 4;
  const std::vector<int64_t> at = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  check_near(values<CyclicLR>(options, at), {1, 2, 3, 4, 5, 4, 3, 2, 1, 2, 3, 4, 5, 4, 3, 2});
  options.mode = "triangular2";
  check_near(values<CyclicLR>(options, at),
             {1, 2, 3, 4, 5, 4, 3, 2, 1, 1.5, 2.0, 2.5, 3.0, 2.5, 2.0, 1.5});
  options.mode = "exp_range";
  options.gamma = 0.9;
  std::vector<double> expected;
  const std::vector<double> heights = {
      0, 0.25, 0.5, 0.75, 1, 0.75, 0.5, 0.25, 0, 0.25, 0.5, 0.75, 1, 0.75, 0.5, 0.25};
  for (size_t i = 0; i < heights.size(); ++i) {
    expected.push_back(1.0 + 4.0 * heights[i] * std::pow(0.9, static_cast<double>(i)));
  }
  check_near(values<CyclicLR>(options, at), expected);
  options.mode = "triangular";
  options.step_size_down = Duration(6);
  check_near(values<CyclicLR>(options, {4, 7, 10, 12}), {5.0, 3.0, 1.0, 3.0});
  options.mode = "square";
  CHECK_THROWS_AS(CyclicLR{options}, UsageError);
}

TEST_CASE(
    "OneCycleLR gives the values of PyTorch's own tests, linear, cosine and in three phases") {
  OneCycleLR::Options options;
  options.initial_learning_rate = 1.0;
  options.max_lr = 25.0;
  options.final_div_factor = 2.0;
  options.total_steps = 10;
  options.anneal_strategy = "linear";
  const std::vector<int64_t> at = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  check_near(values<OneCycleLR>(options, at), {1, 13, 25, 21.5, 18, 14.5, 11, 7.5, 4, 0.5});
  options.anneal_strategy = "cos";
  const auto cosine = [](double from, double to, double share) {
    return to + (from - to) / 2.0 * (1.0 + std::cos(std::acos(-1.0) * share));
  };
  std::vector<double> expected = {1, 13, 25};
  for (int i = 1; i <= 7; ++i) {
    expected.push_back(cosine(25.0, 0.5, i / 7.0));
  }
  check_near(values<OneCycleLR>(options, at), expected);
  options.anneal_strategy = "linear";
  options.three_phase = true;
  options.pct_start = 0.4;
  options.final_div_factor = 4.0;
  check_near(values<OneCycleLR>(options, at), {1, 9, 17, 25, 17, 9, 1, 0.75, 0.5, 0.25});
}

TEST_CASE("WarmupStableDecayLR rises, stays and decays in one of three forms") {
  WarmupStableDecayLR::Options options;
  options.learning_rate = 1.0;
  options.warmup_iters = 10;
  options.decay_iters = 20;
  options.end_learning_rate = 0.2;
  const std::vector<int64_t> at = {0, 5, 10, 79, 80, 85, 90, 100, 200};
  check_near(values<WarmupStableDecayLR>(options, at), {0, 0.5, 1, 1, 1, 0.8, 0.6, 0.2, 0.2});
  options.decay = "cosine";
  check_near(values<WarmupStableDecayLR>(options, {80, 90, 100}), {1.0, 0.6, 0.2});
  options.decay = "sqrt";
  check_near(values<WarmupStableDecayLR>(options, {80, 85, 100}), {1.0, 0.6, 0.2});
}

TEST_CASE("C21: ProductLR multiplies values, ChainedScheduler what has changed") {
  ScheduleProduct::Options options;
  options.schedulers = {use<LinearLR>({0.1, 0.0, 10}), use<StepLR>({0.5, 4, 0.1})};
  ProductLR product(options);
  product.resolve({100, 10});
  CHECK(product.value(0) == doctest::Approx(0.05));
  CHECK(product.value(5) == doctest::Approx(0.05 * 0.05));
  CHECK(product.length() == kEndless);
  ChainedScheduler chained(options);
  chained.resolve({100, 10});
  CHECK(chained.value(0) == doctest::Approx(0.1));
  CHECK(chained.value(5) == doctest::Approx(0.05 * 0.1));
  // The example of PyTorch's page: a constant 0.1 for two updates, and 0.9 an update.
  options.schedulers = {use<PiecewiseConstantLR>({{0.1, 1.0}, {2}}),
                        use<MultiplicativeLR>({1.0, 0.9})};
  ChainedScheduler published(options);
  published.resolve({100, 10});
  for (const auto& [t, lr] : std::vector<std::pair<double, double>>{
           {0, 0.1}, {1, 0.09}, {2, 0.81}, {3, 0.729}, {4, 0.6561}}) {
    CHECK(published.value(t) == doctest::Approx(lr));
  }
  options.schedulers = {use<StepLR>({0.5, 4, 0.1}), use<LinearLR>({0.0, 1.0, 10})};
  ChainedScheduler from_nothing(options);
  CHECK_THROWS_AS(from_nothing.resolve({100, 10}), UsageError);
  CHECK_THROWS_AS(ProductLR{{}}, UsageError);
}

TEST_CASE("LambdaLR is a function of your own") {
  LambdaLR lambda({[](double t) { return 1.0 / (1.0 + t); }});
  lambda.resolve({});
  CHECK(lambda.at(3) == 0.25);
  CHECK_THROWS_AS(LambdaLR{{}}, UsageError);
}

TEST_CASE("durations are updates, fractions of the run or Time strings") {
  CHECK(values<LinearLR>({1.0, 0.0, 0.5}, {25, 50}) == std::vector<double>{0.5, 0.0});
  CHECK(values<LinearLR>({1.0, 0.0, "2ep"}, {10, 20}) == std::vector<double>{0.5, 0.0});
  CHECK(values<LinearLR>({1.0, 0.0}, {50, 100}) == std::vector<double>{0.5, 0.0});
  CHECK(values<StepLR>({1.0, "1ep", 0.5}, {9, 10}) == std::vector<double>{1.0, 0.5});
}

TEST_CASE("a schedule of length 0 is over from the beginning") {
  CHECK(values<LinearLR>({1.0, 0.25, 0}, {0, 1}) == std::vector<double>{0.25, 0.25});
  CHECK(values<CosineDecayLR>({1.0, 0.25, 0}, {0, 1}) == std::vector<double>{0.25, 0.25});
}

TEST_CASE("a length that cannot be counted, or makes no sense, is an error") {
  CosineDecayLR by_share({1.0, 0.0, 0.5});
  CHECK_THROWS_AS(by_share.resolve({}), UsageError);
  LinearLR negative({1.0, 0.0, Time::in(TimeUnit::Update, -1)});
  CHECK_THROWS_AS(negative.resolve({100, 10}), UsageError);
  StepLR standing({1.0, 0});
  CHECK_THROWS_AS(standing.resolve({100, 10}), UsageError);
  CHECK_THROWS_AS(LinearLR({std::nan("")}), UsageError);
  CHECK_THROWS_AS(ConstantLR({INFINITY}), UsageError);
}

TEST_CASE("a length in samples, tokens, seconds or passes is counted in them") {
  Timestamp now;
  now.update = 77;  // nobody's concern here
  now.sample = 2500;
  now.token = 500000;
  now.total_seconds = 900.5;
  now.epoch = 1;
  const std::vector<std::pair<const char*, double>> lengths = {
      {"10000sp", 0.25}, {"2e6tok", 0.25}, {"1h", 900.5 / 3600.0}, {"4ep", 0.25}};
  for (const auto& [text, done] : lengths) {
    const Time length = text;
    INFO(length.to_string());
    LinearLR scheduler({0.0, 1.0, length});
    scheduler.resolve({100, {}});
    CHECK(scheduler.unit() == length.unit());
    CHECK(scheduler.value(now.amount(scheduler.unit())) == done);
  }
}

TEST_CASE("a share of a run that is not counted in updates is in its unit") {
  CosineDecayLR scheduler({1.0, 0.0, 0.5});
  scheduler.resolve({Time("10000sp"), 10});
  CHECK(scheduler.unit() == TimeUnit::Sample);
  CHECK(scheduler.length() == 5000.0);
}

TEST_CASE("durations of one schedule that count different things are an error that names both") {
  StepLR scheduler({1.0, "100sp", 0.5, Time("20ba")});
  try {
    scheduler.resolve({100, 10});
    FAIL("nothing was thrown");
  } catch (const UsageError& error) {
    const std::string text = error.what();
    CHECK(text.find("StepLR.step_size") != std::string::npos);
    CHECK(text.find("StepLR.total_iters") != std::string::npos);
  }
}

TEST_CASE("what never ends says so; the rest say how long they are") {
  ConstantLR for_ever({0.1});
  for_ever.resolve({});
  CHECK(for_ever.length() == kEndless);
  ConstantLR ended({0.1, Time("2ep")});
  ended.resolve({100, 10});
  CHECK(ended.length() == 20);
  CosineDecayLR cosine({1.0, 0.0, 0.5});
  cosine.resolve({100, 10});
  CHECK(cosine.length() == 50);
}

TEST_SUITE_END();
