#include "data/generated/waves.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include "core/error.h"

using namespace rondo;

TEST_SUITE_BEGIN("data/waves");

TEST_CASE("what follows a window goes on where it ends, and is a function of seed and number") {
  Waves::Options options;
  options.size = 20;
  options.noise = 0;
  const Waves waves(options);
  options.window = 49;
  options.horizon = 7;
  const Waves later(options);
  for (int64_t i = 0; i < waves.size(); ++i) {
    const Sample sample = waves.get(i);
    CHECK(sample["series"].sizes() == at::IntArrayRef({48}));
    CHECK(sample["target"].sizes() == at::IntArrayRef({8}));
    CHECK(later.get(i)["series"][48].equal(sample["target"][0]));
    // No wave is quicker than six steps: |d/dt| <= 2 · 2π / 6 and the trend.
    CHECK((sample["target"][0] - sample["series"][47]).abs().item<double>() < 2.11);
  }
  options.split = "val";
  CHECK(!Waves(options).get(0)["series"].equal(later.get(0)["series"]));
  options.split = "train";
  options.size = 1;
  CHECK(Waves(options).get(0)["series"].equal(later.get(0)["series"]));
}

TEST_CASE("options out of range are refused") {
  const auto refuses = [](auto change) {
    Waves::Options options;
    change(options);
    CHECK_THROWS_AS(Waves{options}, UsageError);
  };
  refuses([](auto& o) { o.size = 0; });
  refuses([](auto& o) { o.window = 0; });
  refuses([](auto& o) { o.horizon = 0; });
  refuses([](auto& o) { o.noise = -1; });
  refuses([](auto& o) { o.split = "test"; });
}

TEST_SUITE_END();
