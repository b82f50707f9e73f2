#include "optim/lr_schedulers.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"

using namespace rondo;

namespace {

constexpr double kRounding = 1e-15;  // a few operations on numbers near 1

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
    CHECK(std::abs(found[i] - expected[i]) <= kRounding);
  }
}

}  // namespace

TEST_SUITE_BEGIN("optim/lr_schedulers");

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
