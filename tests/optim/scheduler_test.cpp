#include "optim/scheduler.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "optim/schedulers.h"
#include "optim/sgd.h"
#include "parameters.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// Groups: the rest, "a", "b".
std::unique_ptr<Sgd> optimizer() {
  auto made = std::make_unique<Sgd>(
      Sgd::Options{0.1, 0.9, 0.0, 0.0, false, {{{"p1"}, "a", {}}, {{"p3"}, "b", {}}}});
  made->attach(parameters(1));
  return made;
}

std::unique_ptr<Scheduler> driving(std::string key, std::vector<std::string> tags) {
  return std::make_unique<ConstantLR>(
      ConstantLR::Options{0.5, {}, {std::move(key), std::move(tags)}});
}

template <class... Schedulers>
std::string complaint(Schedulers... scheduler) {
  std::vector<std::unique_ptr<Scheduler>> all;
  (all.push_back(std::move(scheduler)), ...);
  try {
    check_schedulers(all, *optimizer());
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_SUITE_BEGIN("optim/scheduler");

TEST_CASE("a scheduler writes the value of the update into the groups that it drives") {
  const auto sgd = optimizer();
  LinearLR linear({1.0, 0.0, 10, {"lr", {"a", "b"}}});
  linear.resolve({});
  const void* const memory = sgd->groups()[1]["lr"].data_ptr();
  Timestamp now;
  now.update = 5;
  linear.write(now, *sgd);
  CHECK(sgd->groups()[0]["lr"].item<double>() == 0.1);
  CHECK(sgd->groups()[1]["lr"].item<double>() == 0.5);
  CHECK(sgd->groups()[2]["lr"].item<double>() == 0.5);
  CHECK(sgd->groups()[1]["lr"].data_ptr() == memory);
}

TEST_CASE("a scheduler without tags drives every group, of the number that it names") {
  const auto sgd = optimizer();
  driving("momentum", {})->write(Timestamp(), *sgd);
  for (ParamGroup& group : sgd->groups()) {
    CHECK(group["momentum"].item<double>() == 0.5);
    CHECK(group["lr"].item<double>() == 0.1);
  }
}

TEST_CASE("T88: two schedulers of one number fail when one has no tags or tags overlap") {
  CHECK(complaint(driving("lr", {})) == "");
  CHECK(complaint(driving("lr", {}), driving("momentum", {})) == "");
  CHECK(complaint(driving("lr", {"a"}), driving("lr", {"b"})) == "");
  CHECK(complaint(driving("lr", {"a"}), driving("momentum", {"a"})) == "");
  const std::string untagged = complaint(driving("lr", {"a"}), driving("lr", {}));
  CHECK(holds(untagged, "schedulers[0]"));
  CHECK(holds(untagged, "schedulers[1]"));
  CHECK(holds(untagged, "\"lr\""));
  const std::string shared =
      complaint(driving("lr", {"b"}), driving("momentum", {}), driving("lr", {"a", "b"}));
  CHECK(holds(shared, "schedulers[0]"));
  CHECK(holds(shared, "schedulers[2]"));
  CHECK(holds(shared, "\"b\""));
}

TEST_CASE("a tag that no group has, or a number that the optimizer has not, fails by name") {
  CHECK(holds(complaint(driving("lr", {"c"})), "\"c\""));
  CHECK(holds(complaint(driving("momentun", {})), "\"momentum\""));
}

TEST_CASE("a relative schedule drives each group by factors of that group's own number") {
  Sgd sgd(Sgd::Options{0.1, 0.9, 0.0, 0.0, false, {{{"p1"}, "a", {{"lr", 0.02}}}}});
  sgd.attach(parameters(1));
  LinearLR linear({1.0, 0.0, 10, {"lr", {}, true}});
  linear.attach(sgd);
  linear.resolve({});
  Timestamp now;
  for (const int64_t update : {5, 8}) {  // not of what was written before
    now.update = update;
    linear.write(now, sgd);
  }
  CHECK(sgd.groups()[0]["lr"].item<double>() == 0.1 * linear.value(8));
  CHECK(sgd.groups()[1]["lr"].item<double>() == 0.02 * linear.value(8));
}

TEST_CASE("C15: a warm-up is 0 at first, meets the schedule at its end, and squeezes what ends") {
  CosineDecayLR cosine({1.0, 0.2, 50, {"lr", {}, false, "", 10}});
  cosine.resolve({100, 10});
  CosineDecayLR plain({1.0, 0.2, 40});
  plain.resolve({100, 10});
  CHECK(cosine.at(0) == 0.0);
  CHECK(cosine.at(5) == 0.5);
  for (const double after : {0.0, 1.0, 20.0, 39.0, 40.0, 60.0}) {
    CAPTURE(after);
    CHECK(cosine.at(10 + after) == doctest::Approx(plain.value(after)).epsilon(1e-12));
  }
  CHECK(cosine.length() == 50);
}

TEST_CASE("a warm-up of a schedule without an end takes the place of its beginning") {
  StepLR stairs({1.0, 20, 0.5, {}, {"lr", {}, false, "", "1ep"}});
  stairs.resolve({100, 10});
  CHECK(stairs.at(0) == 0.0);
  CHECK(stairs.at(5) == 0.5);
  CHECK(stairs.at(10) == 1.0);
  CHECK(stairs.at(20) == 0.5);
  InverseSquareRootDecayLR noam({2.0, 1.0, 16, {"lr", {}, false, "", 16}});
  noam.resolve({});
  for (const double t : {1.0, 8.0, 16.0, 64.0}) {
    CHECK(noam.at(t) == doctest::Approx(2.0 * std::min(1.0 / std::sqrt(t), t / 64.0)));
  }
}

TEST_CASE("a warm-up in another unit, or as long as the schedule, is an error") {
  LinearLR other({1.0, 0.0, 50, {"lr", {}, false, "", "100sp"}});
  CHECK_THROWS_AS(other.resolve({100, 10}), UsageError);  // C16
  LinearLR whole({1.0, 0.0, 50, {"lr", {}, false, "", 50}});
  CHECK_THROWS_AS(whole.resolve({100, 10}), UsageError);
}

TEST_CASE("C18: a ratio moves durations and milestones, and a warm-up only when asked") {
  MultiStepLR stairs({1.0, {30, "6ep"}, 0.1, {"lr", {}, false, "", 8}});
  stairs.resolve({50, 10}, 0.5);
  CHECK(stairs.at(4) == 0.5);
  CHECK(stairs.at(14) == 1.0);
  CHECK(stairs.at(15) == 0.1);
  CHECK(stairs.at(30) == doctest::Approx(0.01));
  LinearLR scaled({1.0, 0.0, 0.5, {"lr", {}, false, "", 8, true}});
  scaled.resolve({50, 10}, 0.5);
  CHECK(scaled.at(2) == 0.5);
  CHECK(scaled.length() == 25);  // a fraction is one of the scaled run
  StepLR nothing({1.0, 3, 0.5});
  CHECK_THROWS_AS(nothing.resolve({100, 10}, 0.1), UsageError);  // C19
}

TEST_SUITE_END();
