#include "data/images/resample.h"

#include <ATen/ops/_upsample_bilinear2d_aa.h>
#include <doctest/doctest.h>
#include <torch/types.h>

#include <cstring>

#include "data/image_files.h"
#include "data/images/image_box.h"

using namespace rondo;
using namespace rondo::test;

namespace {

at::Tensor resampled(const Image& image, const ImageBox& box, int64_t height, int64_t width) {
  at::Tensor to = torch::empty({image.channels, height, width});
  resample(image, box, height, width, to.data_ptr<float>());
  return to;
}

/// float32 [channels, height, width], in [0, 1].
at::Tensor as_tensor(const Image& image) {
  at::Tensor bytes = torch::empty({image.height, image.width, image.channels}, torch::kByte);
  std::memcpy(bytes.data_ptr(), image.bytes.data(), image.bytes.size());
  return bytes.permute({2, 0, 1}).to(torch::kFloat).div(255).contiguous();
}

}  // namespace

TEST_SUITE_BEGIN("data/resample");

TEST_CASE("the same size gives the same values") {
  const Image image = ramp(7, 9, 3);
  CHECK(at::allclose(resampled(image, {}, 7, 9), as_tensor(image), 1e-6, 1e-6));
}

TEST_CASE("growing and shrinking are LibTorch's antialiased bilinear interpolation") {
  const Image image = ramp(24, 36, 3);
  for (const auto& [height, width] : {std::pair(11, 13), std::pair(48, 50), std::pair(5, 70)}) {
    CAPTURE(height);
    const at::Tensor expected =
        at::_upsample_bilinear2d_aa(as_tensor(image).unsqueeze(0), {height, width}, false);
    CHECK(at::allclose(resampled(image, {}, height, width), expected[0], 1e-4, 1e-4));
  }
}

TEST_CASE("a part is what it would be of a picture that is no larger, but for its edges") {
  const Image image = ramp(40, 40, 1);
  const at::Tensor part = resampled(image, {0.25, 0.5, 0.5, 0.5}, 20, 20);
  CHECK(at::allclose(part[0], as_tensor(image)[0].slice(0, 10, 30).slice(1, 20, 40), 1e-5, 1e-5));
}

TEST_CASE("white of 16 bits is 1") {
  const Image wide{2, 2, 1, true, std::vector<uint8_t>(8, 255)};
  CHECK(at::allclose(resampled(wide, {}, 3, 1), torch::ones({1, 3, 1})));
}

TEST_CASE("the middle part has the shape of the result and touches two edges") {
  const ImageBox wide = center_box(100, 300, 50, 50);
  CHECK(wide.height == 1.0);
  CHECK(wide.width == doctest::Approx(1.0 / 3));
  CHECK(wide.left == doctest::Approx(1.0 / 3));
  const ImageBox tall = center_box(300, 100, 50, 100);
  CHECK(tall.width == 1.0);
  CHECK(tall.height == doctest::Approx(1.0 / 6));
}

TEST_SUITE_END();
