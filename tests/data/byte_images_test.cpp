#include "data/images/byte_images.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include "core/error.h"
#include "core/state_dict.h"

using namespace rondo;

TEST_SUITE_BEGIN("data/byte_images");

TEST_CASE("bytes become (byte / 255 - mean) / std, channel by channel") {
  ByteImages images;
  images.shape = {2, 1, 2};
  images.values = {pixel_values(0.0, 1.0), pixel_values(0.5, 0.25)};
  images.pixels = {0, 255, 51, 255, 1, 2, 3, 4};
  images.labels = {7, 255};
  const Batch batch = images.gather({1, 0});
  CHECK(batch["image"].sizes() == at::IntArrayRef({2, 2, 1, 2}));
  CHECK(equal_bytes(batch["image"][1].flatten(),
                    torch::tensor({0.0F, 1.0F, (0.2F - 0.5F) / 0.25F, 2.0F})));
  CHECK(equal_bytes(batch["label"], torch::tensor({255, 7}, at::kLong)));
  CHECK_THROWS_AS(images.gather({2}), UsageError);
}

TEST_SUITE_END();
