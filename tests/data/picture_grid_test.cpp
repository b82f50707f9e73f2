#include "data/images/picture_grid.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

using namespace rondo;

namespace {

/// Black but for one row of white pixels.
Sample striped(int64_t row) {
  const at::Tensor image = at::zeros({1, 4, 4});
  image[0][row].fill_(1);
  return Sample{{"label", at::tensor(row)}, {"image", image}};
}

}  // namespace

TEST_SUITE_BEGIN("data/picture_grid");

TEST_CASE("pictures stand in rows and columns with a line between them") {
  const auto grid = picture_grid({striped(0), striped(1), striped(3)});
  REQUIRE(grid);
  CHECK(grid->height == 9);
  CHECK(grid->width == 9);
  const auto pixel = [&](int64_t y, int64_t x) {
    return grid->pixels[static_cast<size_t>(y * grid->width + x)];
  };
  CHECK(pixel(0, 0) == 255);
  CHECK(pixel(0, 4) == 0);
  CHECK(pixel(1, 5) == 255);
  CHECK(pixel(8, 0) == 255);
  CHECK(pixel(8, 8) == 0);
}

TEST_CASE("samples of different sizes and channels share a grid; without pictures there is none") {
  const Sample coloured{{"image", at::rand({3, 6, 2})}};
  const auto grid = picture_grid({striped(0), coloured});
  REQUIRE(grid);
  CHECK(grid->channels == 3);
  CHECK(grid->height == 6);
  CHECK(grid->width == 9);
  CHECK_FALSE(picture_grid({Sample{{"x", at::rand({4})}}, Sample{{"y", at::rand({9, 9})}}}));
  CHECK_FALSE(picture_grid({}));
}

TEST_CASE("a picture becomes letters, or coloured half blocks, no wider than asked") {
  Picture picture{4, 4, 1, std::vector<uint8_t>(16, 0)};
  std::fill(picture.pixels.begin(), picture.pixels.begin() + 8, 255);
  CHECK(picture_text(picture, 80, false) == "@@@@\n    \n");
  CHECK(picture_text(picture, 2, false) == "==\n");
  const std::string coloured = picture_text(picture, 80, true);
  CHECK(coloured.find("\033[38;2;255;255;255m\033[48;2;255;255;255m▀") == 0);
  CHECK(coloured.find("\033[38;2;0;0;0m") != std::string::npos);
  CHECK(std::count(coloured.begin(), coloured.end(), '\n') == 2);
}

TEST_SUITE_END();
