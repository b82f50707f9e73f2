#include "tracing/checks/state_snapshot.h"

#include <doctest/doctest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <array>
#include <limits>

#include "core/state_dict.h"

TEST_SUITE_BEGIN("tracing/checks/state_snapshot");

using namespace rondo;

TEST_CASE("a swap brings back what was there, and again what came after") {
  const at::Tensor flat = torch::arange(6, at::kFloat);
  const at::Tensor view = flat.narrow(0, 2, 2);
  const at::Tensor count = torch::zeros({}, at::kLong);
  const Batch batch{{"x", torch::ones({2})}};
  torch::manual_seed(1);
  StateSnapshot snapshot({{"flat", flat}, {"view", view}, {"count", count}}, batch);
  CHECK(snapshot.first_difference() == "");

  view.fill_(9);
  count.add_(1);
  batch["x"].zero_();
  const at::Tensor drawn = torch::rand({3});
  CHECK(snapshot.first_difference() == "flat");

  snapshot.swap();
  CHECK(equal_bytes(flat, torch::arange(6, at::kFloat)));
  CHECK(equal_bytes(batch["x"], torch::ones({2})));
  CHECK(count.item<int64_t>() == 0);
  CHECK(equal_bytes(torch::rand({3}), drawn));

  view.fill_(9);
  count.add_(1);
  batch["x"].zero_();
  CHECK(snapshot.first_difference() == "");
}

TEST_CASE("a difference in a batch, in a sign of zero or in the generator is one") {
  const Batch batch{{"x", torch::zeros({2})}};
  torch::manual_seed(1);
  const StateSnapshot snapshot({}, batch);
  SUBCASE("batch") {
    batch["x"].neg_();
    CHECK(snapshot.first_difference() == "batch entry x");
  }
  SUBCASE("generator") {
    torch::rand({1});
    CHECK(snapshot.first_difference() == "the random number generator");
  }
}

TEST_CASE("memory that was resized is not copied over, and keeps what it holds") {
  const at::Tensor grown = torch::zeros({4});
  const at::Tensor other = torch::zeros({4});
  StateSnapshot snapshot({{"grown", grown}, {"other", other}}, {});
  grown.resize_({4000}).fill_(3);
  other.fill_(3);
  CHECK_FALSE(snapshot.retake({{"grown", grown}, {"other", other}}));
  snapshot.swap();
  CHECK(equal_bytes(grown, torch::full({4000}, 3.0F)));
  CHECK(equal_bytes(other, torch::zeros({4})));
}

TEST_CASE("memory of several pieces is exchanged whole, and memory that is equal is not written") {
  const at::Tensor large = torch::arange(700000, at::kInt);
  static const std::array<uint8_t, 8> read_only{1, 2, 3, 4, 5, 6, 7, 8};
  const Batch batch{
      {"x", torch::from_blob(const_cast<uint8_t*>(read_only.data()), {8}, at::kByte)}};
  StateSnapshot snapshot({{"large", large}}, batch);
  const at::Tensor before = large.clone();
  const at::Tensor after = large.neg();
  large.copy_(after);
  snapshot.swap();
  CHECK(equal_bytes(large, before));
  snapshot.swap();
  CHECK(equal_bytes(large, after));
}

TEST_CASE("which NaN a tensor holds makes no difference") {
  const at::Tensor grad = torch::full({2}, std::numeric_limits<float>::quiet_NaN());
  const StateSnapshot snapshot({{"grad", grad}}, {});
  grad.neg_();
  CHECK(snapshot.first_difference() == "");
  grad.fill_(1.0);
  CHECK(snapshot.first_difference() == "grad");
}

TEST_CASE("undefined and empty tensors of the state are nothing to copy") {
  const StateSnapshot snapshot({{"grad", at::Tensor()}, {"empty", torch::empty({0})}}, {});
  CHECK(snapshot.first_difference() == "");
}

TEST_SUITE_END();
