#include "data/micro_batches.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include "core/error.h"

using namespace rondo;

TEST_SUITE_BEGIN("data/micro_batches");

TEST_CASE("C39: a batch is cut along its first dimension, but for what is to stay whole") {
  const Batch batch = {{"table", at::arange(2)},
                       {"x", at::arange(10).reshape({5, 2})},
                       {"label", at::arange(5)},
                       {"epoch", at::ones({})}};
  const std::vector<Batch> pieces = micro_batches(batch, 2, {"table"});
  REQUIRE(pieces.size() == 3);
  CHECK(pieces[0].size() == 2);
  CHECK(pieces[2].size() == 1);
  for (size_t i = 0; i < pieces.size(); ++i) {
    CHECK(at::equal(pieces[i]["table"], batch["table"]));
    CHECK(at::equal(pieces[i]["epoch"], batch["epoch"]));
    const auto begin = static_cast<int64_t>(2 * i);
    CHECK(at::equal(pieces[i]["x"], batch["x"].slice(0, begin, begin + 2)));
    CHECK(at::equal(pieces[i]["label"], batch["label"].slice(0, begin, begin + 2)));
  }
  CHECK(micro_batches(batch, 5, {"table"}).size() == 1);
}

TEST_CASE("a tensor without a row for each sample is an error that names it") {
  const Batch batch = {{"x", at::zeros({5, 2})}, {"table", at::zeros({2})}};
  CHECK_THROWS_WITH_AS(
      micro_batches(batch, 2, {}), doctest::Contains("\"table\" has 2 rows"), DataError);
  CHECK_THROWS_WITH_AS(
      micro_batches(batch, 2, {"x", "table"}), doctest::Contains("no tensor to cut"), DataError);
}

TEST_CASE("tokens are the labels that count, or all tokens where there are no labels") {
  const at::Tensor label = torch::tensor({1, -100, 0, -100}, torch::kLong);
  const Batch labelled = {{"x", at::zeros({4})}, {"label", label}};
  CHECK(tokens_of(labelled, {"label", "targets"}) == 2);
  CHECK(tokens_of({{"tokens", at::zeros({2, 3})}}, {"label"}) == 6);
  CHECK_THROWS_WITH_AS(
      tokens_of({{"x", at::zeros({2})}}, {"label"}), doctest::Contains("[label]"), DataError);
}

TEST_SUITE_END();
