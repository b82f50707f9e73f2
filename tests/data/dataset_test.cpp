#include "data/dataset.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include "core/error.h"
#include "core/state_dict.h"
#include "data/data_files.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// Every sample is its index; 13 cannot be had, 17 has another shape.
struct Unlucky final : Dataset {
  int64_t size() const override { return 100; }

  Sample get(int64_t index) const override {
    if (index == 13) {
      throw std::runtime_error("bad luck");
    }
    return {{"x", at::full({index == 17 ? 3 : 2}, static_cast<double>(index))}};
  }
};

}  // namespace

TEST_SUITE_BEGIN("data/dataset");

TEST_CASE("samples are stacked along a new first dimension, 0-dim ones to a vector") {
  const Batch batch =
      stack({{{"image", at::ones({2, 3})}, {"label", at::full({}, 4, at::kLong)}},
             {{"image", at::zeros({2, 3})}, {"label", at::full({}, 5, at::kLong)}}});
  CHECK(batch["image"].sizes() == at::IntArrayRef({2, 2, 3}));
  CHECK(equal_bytes(batch["label"], torch::tensor({4, 5}, at::kLong)));
  CHECK(batch.size() == 2);
  CHECK(stack({}).empty());
}

TEST_CASE("samples that are views, and tensors without elements, are stacked by their values") {
  const at::Tensor grid = at::arange(6, at::kFloat).view({2, 3});
  const Batch batch = stack({{{"t", grid.t()}, {"none", at::empty({0})}},
                             {{"t", grid.t() + 1}, {"none", at::empty({0})}}});
  CHECK(equal_bytes(batch["t"], at::stack({grid.t(), grid.t() + 1})));
  CHECK(batch["none"].sizes() == at::IntArrayRef({2, 0}));
}

TEST_CASE("samples of different names, shapes or dtypes are an error naming what differs") {
  const Sample a{{"x", at::zeros({2})}};
  const auto error_with = [&](const Sample& b) {
    const std::function<void()> call = [&] { stack({a, b}); };
    CHECK_THROWS_AS(call(), DataError);
    return message_of(call);
  };
  CHECK(contains(error_with({{"x", at::zeros({3})}}), "[3]"));
  CHECK(contains(error_with({{"x", at::zeros({2}, at::kLong)}}), "Long"));
  CHECK(contains(error_with({{"y", at::zeros({2})}}), "\"x\""));
  CHECK(contains(error_with({{"x", at::Tensor()}}), "\"x\""));
  CHECK(contains(error_with({{"x", at::zeros({2})}, {"y", at::zeros({2})}}), "2 tensors"));
}

TEST_CASE("an error of get names the index and nests its cause") {
  const std::function<void()> call = [] { Unlucky().get_batch({1, 13}); };
  CHECK_THROWS_AS(call(), DataError);
  CHECK(contains(message_of(call), "sample 13"));
  CHECK(contains(message_of(call), "bad luck"));
  CHECK(contains(message_of([] { Unlucky().get_batch({1, 17}); }), "sample 17"));
}

TEST_SUITE_END();
