#include "data/generated/shapes.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <set>

#include "core/error.h"

using namespace rondo;

TEST_SUITE_BEGIN("data/shapes");

TEST_CASE("a picture is bright where its mask has a shape, and every kind occurs") {
  Shapes::Options options;
  options.size = 60;
  options.side = 16;
  options.noise = 0;
  const Shapes shapes(options);
  std::set<int64_t> kinds;
  for (int64_t i = 0; i < shapes.size(); ++i) {
    const Sample sample = shapes.get(i);
    CHECK((sample["image"].sizes() == at::IntArrayRef({1, 16, 16})));
    CHECK(sample["mask"].sizes() == at::IntArrayRef({16, 16}));
    CHECK(sample["image"][0].gt(0).equal(sample["mask"].gt(0)));
    CHECK(sample["mask"].gt(0).any().item<bool>());
    const int64_t most = sample["mask"].max().item<int64_t>();
    CHECK(most <= 3);
    kinds.insert(most);
  }
  CHECK(kinds.size() == 3);
  CHECK(*shapes.facts().classes == 4);
}

TEST_CASE("pictures follow from seed, split and number alone") {
  Shapes::Options options;
  options.size = 4;
  const Shapes four(options);
  options.size = 2;
  const Shapes two(options);
  const auto image = [](const Shapes& shapes, int64_t i) { return shapes.get(i)["image"]; };
  CHECK(image(four, 1).equal(image(two, 1)));
  CHECK(!image(four, 1).equal(image(four, 0)));
  options.split = "val";
  CHECK(!image(Shapes(options), 1).equal(image(two, 1)));
  options.split = "train";
  options.seed = 1;
  CHECK(!image(Shapes(options), 1).equal(image(two, 1)));
  CHECK(four.get_batch({2, 0})["mask"][1].equal(four.get(0)["mask"]));
}

TEST_CASE("options out of range are refused") {
  const auto refuses = [](auto change) {
    Shapes::Options options;
    change(options);
    CHECK_THROWS_AS(Shapes{options}, UsageError);
  };
  refuses([](auto& o) { o.size = 0; });
  refuses([](auto& o) { o.side = 7; });
  refuses([](auto& o) { o.most_shapes = 0; });
  refuses([](auto& o) { o.noise = -1; });
  refuses([](auto& o) { o.split = "test"; });
}

TEST_SUITE_END();
