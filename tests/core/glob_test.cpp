#include "core/glob.h"

#include <doctest/doctest.h>

using rondo::glob_match;
using rondo::matches_any;

TEST_SUITE_BEGIN("core/glob");

TEST_CASE("one of several patterns is enough, and none never matches") {
  CHECK(matches_any({"*.weight", "*.bias"}, "layers.0.bias"));
  CHECK_FALSE(matches_any({"*.weight"}, "layers.0.bias"));
  CHECK_FALSE(matches_any({}, ""));
}

TEST_CASE("a star matches any run, a question mark one character, the rest itself") {
  CHECK(glob_match("*.bias", "layers.0.bias"));
  CHECK(glob_match("model/layer*", "model/layer1/weight"));
  CHECK(glob_match("a?c", "abc"));
  CHECK(glob_match("*", ""));
  CHECK(glob_match("a*b*c", "aXbYbZc"));
  CHECK_FALSE(glob_match("a?c", "ac"));
  CHECK_FALSE(glob_match("*.bias", "layers.0.biases"));
  CHECK_FALSE(glob_match("", "a"));
}

TEST_CASE("the nearest candidate is one that may have been meant") {
  CHECK(rondo::nearest("lrr", {"betas", "lr", "params"}) == "lr");
  CHECK(rondo::nearest("stpes", {"seed", "steps", "max_steps"}) == "steps");
  CHECK(rondo::nearest("Mpl", {"Gpt", "Mlp"}) == "Mlp");
  CHECK(rondo::nearest("adamw", {"SGD", "AdamW"}) == "AdamW");
  CHECK(rondo::nearest("zzz", {"betas", "lr"}).empty());
}

TEST_SUITE_END();
