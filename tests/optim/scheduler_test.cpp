#include "optim/scheduler.h"

#include <doctest/doctest.h>

#include "core/error.h"
#include "optim/lr_schedulers.h"
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
      ConstantLR::Options{0.5, {}, std::move(key), std::move(tags)});
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
  LinearLR linear({1.0, 0.0, 10, "lr", {"a", "b"}});
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

TEST_SUITE_END();
