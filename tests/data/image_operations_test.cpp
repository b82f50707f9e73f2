#include "data/images/image_operations.h"

#include <doctest/doctest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"

using namespace rondo;

namespace {

/// Each value says where it is.
at::Tensor numbered(int64_t batch) {
  return torch::arange(1, 1 + 2 * 5 * 6, torch::kFloat)
      .reshape({1, 2, 5, 6})
      .repeat({batch, 1, 1, 1});
}

}  // namespace

TEST_SUITE_BEGIN("data/image_operations");

TEST_CASE("each picture of a batch is flipped or not") {
  torch::manual_seed(1);
  const at::Tensor images = numbered(64);
  const at::Tensor flipped = random_flip(images, 0.5);
  int64_t count = 0;
  for (int64_t i = 0; i < 64; ++i) {
    const bool is_flipped = flipped[i].equal(images[i].flip({2}));
    CHECK((is_flipped || flipped[i].equal(images[i])));
    count += is_flipped ? 1 : 0;
  }
  CHECK(count > 10);
  CHECK(count < 54);
  CHECK(random_flip(images, 0.0).equal(images));
  CHECK(random_flip(images, 1.0).equal(images.flip({3})));
}

TEST_CASE("a picture moves as a whole, and zeros come in") {
  torch::manual_seed(2);
  const at::Tensor images = numbered(40);
  const at::Tensor moved = random_shift(images, 2);
  REQUIRE(moved.sizes() == images.sizes());
  int64_t places = 0;
  for (int64_t i = 0; i < 40; ++i) {
    bool is_found = false;
    for (int64_t y = -2; y <= 2; ++y) {
      for (int64_t x = -2; x <= 2; ++x) {
        const at::Tensor wide = torch::constant_pad_nd(images[i], {2, 2, 2, 2}, 0);
        if (moved[i].equal(wide.slice(1, 2 + y, 7 + y).slice(2, 2 + x, 8 + x))) {
          is_found = true;
          places |= int64_t{1} << ((y + 2) * 5 + x + 2);
        }
      }
    }
    CHECK(is_found);
  }
  CHECK(__builtin_popcountll(static_cast<unsigned long long>(places)) > 10);
}

TEST_CASE("light changes the mean and what differs from it, picture by picture") {
  torch::manual_seed(3);
  const at::Tensor images = numbered(20);
  const at::Tensor mean = images.mean({1, 2, 3});
  const at::Tensor factor = random_light(images, 0.3, 0.0).mean({1, 2, 3}) / mean;
  CHECK(factor.min().item<double>() >= 0.699);
  CHECK(factor.max().item<double>() <= 1.301);
  CHECK(factor.std().item<double>() > 0.05);
  const at::Tensor contrast = random_light(images, 0.0, 0.5);
  CHECK(at::allclose(contrast.mean({1, 2, 3}), mean, 1e-4, 1e-4));
  const at::Tensor spread = contrast.flatten(1).std(1) / images.flatten(1).std(1);
  CHECK(spread.min().item<double>() >= 0.499);
  CHECK(spread.max().item<double>() <= 1.501);
}

TEST_CASE("a rectangle is erased in all channels, the rest stays") {
  torch::manual_seed(4);
  const at::Tensor images = numbered(50);
  const at::Tensor erased = random_erase(images, 1.0);
  for (int64_t i = 0; i < 50; ++i) {
    const at::Tensor is_zero = erased[i].eq(0);
    CHECK(is_zero[0].equal(is_zero[1]));
    CHECK(erased[i]
              .masked_select(is_zero.logical_not())
              .equal(images[i].masked_select(is_zero.logical_not())));
    const int64_t rows = is_zero[0].any(1).sum().item<int64_t>();
    const int64_t columns = is_zero[0].any(0).sum().item<int64_t>();
    CHECK(is_zero[0].sum().item<int64_t>() == rows * columns);
    CHECK(rows >= 1);
    CHECK(rows <= 3);
    CHECK(columns <= 3);
  }
  CHECK(random_erase(images, 0.0).equal(images));
}

TEST_CASE("what is no batch of pictures is refused") {
  CHECK_THROWS_AS(random_flip(torch::zeros({2, 3, 4}), 0.5), ShapeError);
  CHECK_THROWS_AS(random_shift(torch::zeros({2, 1, 4, 4}, torch::kByte), 1), ShapeError);
}

TEST_SUITE_END();
