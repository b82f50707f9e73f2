#include "core/state_dict.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <cmath>
#include <limits>

#include "core/error.h"

using namespace rondo;

TEST_SUITE_BEGIN("core/state_dict");

TEST_CASE("paths walk into dictionaries; a name that holds a slash is found whole") {
  StateDict state{{"model", StateDict{{"a.weight", torch::ones({2})}}}, {"x/y", 3}};
  CHECK(state.at("model/a.weight").as_tensor().numel() == 2);
  CHECK(state.at("x/y").as_int() == 3);
  CHECK(state.find("model/b") == nullptr);
  CHECK_THROWS_AS(state.at("optimizer"), CheckpointError);
  CHECK_THROWS_AS(state.at("x/y").as_string(), CheckpointError);
}

TEST_CASE("a number may come back from a file as a 0-dim tensor") {
  CHECK(StateValue(torch::tensor(0.25, torch::kFloat64)).as_double() == 0.25);
  CHECK(StateValue(torch::tensor(int64_t{7})).as_int() == 7);
}

TEST_CASE("bytes are compared: NaN equals itself, -0.0 does not equal 0.0") {
  const auto with = [](double value) {
    return StateDict{{"m", StateDict{{"t", torch::full({3}, value)}}}};
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(first_difference(with(nan), with(nan)).empty());
  CHECK(first_difference(with(0.0), with(-0.0)) == "m/t");
  CHECK(first_difference(StateDict{{"a", 1}}, StateDict{}) == "a");
  CHECK(first_difference(StateDict{}, StateDict{{"a", 1}}) == "a");
  CHECK(first_difference(StateDict{{"l", StateList{1, "x"}}},
                         StateDict{{"l", StateList{1, "y"}}}) == "l/1");
}

TEST_CASE("the items of a temporary can be iterated") {
  const auto make = [] { return StateDict{{"a", 1}, {"b", 2}}; };
  int64_t sum = 0;
  for (const auto& item : make().items()) {
    sum += item.second.as_int();
  }
  CHECK(sum == 3);
}

TEST_SUITE_END();
