#include "core/dataset_facts.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/error.h"

using namespace rondo;

TEST_SUITE_BEGIN("core/dataset_facts");

TEST_CASE("facts come back from their state, also those that are not known") {
  DatasetFacts facts;
  facts.features = 2;
  facts.feature_names = {"a", "b"};
  facts.categories = {3, 4};
  facts.category_names = {"c", "d"};
  facts.classes = 2;
  facts.class_names = {"no", "yes"};
  facts.class_weights = {0.5, 1.5};
  facts.targets = {{"price", true, 1.0, 2.0}};
  facts.image_shape = {1, 2, 3};
  const StateDict state = to_state(facts);
  const DatasetFacts again = facts_from(state);
  CHECK(first_difference(to_state(again), state) == "");
  CHECK(again.features == 2);
  CHECK(again.class_names == facts.class_names);
  CHECK(again.targets[0].name == "price");
  CHECK(!again.vocabulary);
  CHECK(!facts_from(to_state({})).features);
  CHECK_THROWS_AS(facts_from({}), CheckpointError);
}

TEST_CASE("a scaled value comes back in the units of the data") {
  const DatasetFacts::Target plain{"x", false, 3.0, 2.0};
  CHECK(plain.original(-1.0) == 1.0);
  const DatasetFacts::Target log{"x", true, 0.0, 1.0};
  CHECK(log.original(std::log1p(9.0)) == doctest::Approx(9.0));
  CHECK(log.original(-std::log1p(9.0)) == doctest::Approx(-9.0));
}

TEST_SUITE_END();
