#include "data/images/picture_grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace rondo {

namespace {

bool can_be_picture(const at::Tensor& tensor) {
  return tensor.dim() == 3 && tensor.numel() > 0 && (tensor.size(0) == 1 || tensor.size(0) == 3);
}

const at::Tensor* picture_in(const Sample& sample) {
  const at::Tensor* const image = sample.find("image");
  if (image != nullptr && can_be_picture(*image)) {
    return image;
  }
  for (const NamedTensor& tensor : sample.items()) {
    if (can_be_picture(tensor.second)) {
      return &tensor.second;
    }
  }
  return nullptr;
}

std::vector<Picture> pictures_of(const std::vector<Sample>& samples) {
  std::vector<Picture> pictures;
  for (const Sample& sample : samples) {
    if (const at::Tensor* const pixels = picture_in(sample)) {
      pictures.push_back(picture_of(*pixels));
    }
  }
  return pictures;
}

/// Copies `part` to where its top left corner is to be; grey pixels become coloured ones.
void paste(const Picture& part, Picture& whole, int64_t top, int64_t left) {
  for (int64_t y = 0; y < part.height; ++y) {
    for (int64_t x = 0; x < part.width; ++x) {
      const int64_t from = (y * part.width + x) * part.channels;
      const int64_t to = ((top + y) * whole.width + left + x) * whole.channels;
      for (int64_t c = 0; c < whole.channels; ++c) {
        whole.pixels[static_cast<size_t>(to + c)] =
            part.pixels[static_cast<size_t>(from + std::min(c, part.channels - 1))];
      }
    }
  }
}

using Colour = std::array<int, 3>;

/// The mean colour of the pixels in [top, bottom) x [left, right), at least one.
Colour mean_colour(const Picture& picture, double top, double bottom, double left, double right) {
  const auto within = [](double at, int64_t end) {
    return std::clamp<int64_t>(static_cast<int64_t>(at), 0, end - 1);
  };
  const int64_t first_row = within(top, picture.height);
  const int64_t last_row = std::max(first_row, within(std::ceil(bottom) - 1, picture.height));
  const int64_t first_column = within(left, picture.width);
  const int64_t last_column = std::max(first_column, within(std::ceil(right) - 1, picture.width));
  std::array<int64_t, 3> sums = {};
  for (int64_t y = first_row; y <= last_row; ++y) {
    for (int64_t x = first_column; x <= last_column; ++x) {
      for (int64_t c = 0; c < 3; ++c) {
        const int64_t at =
            (y * picture.width + x) * picture.channels + std::min(c, picture.channels - 1);
        sums[static_cast<size_t>(c)] += picture.pixels[static_cast<size_t>(at)];
      }
    }
  }
  const int64_t count = (last_row - first_row + 1) * (last_column - first_column + 1);
  return {static_cast<int>(sums[0] / count),
          static_cast<int>(sums[1] / count),
          static_cast<int>(sums[2] / count)};
}

char letter_of(const Colour& colour) {
  constexpr std::string_view kLetters = " .:-=+*#%@";
  const int sum = colour[0] + colour[1] + colour[2];
  return kLetters[static_cast<size_t>(sum) * (kLetters.size() - 1) / (3 * 255)];
}

}  // namespace

std::optional<Picture> picture_grid(const std::vector<Sample>& samples) {
  const std::vector<Picture> pictures = pictures_of(samples);
  if (pictures.empty()) {
    return std::nullopt;
  }
  const auto count = static_cast<int64_t>(pictures.size());
  const auto columns = static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(count))));
  const int64_t rows = (count + columns - 1) / columns;
  Picture cell;
  for (const Picture& picture : pictures) {
    cell.height = std::max(cell.height, picture.height);
    cell.width = std::max(cell.width, picture.width);
    cell.channels = std::max(cell.channels, picture.channels);
  }
  Picture grid;
  grid.height = rows * (cell.height + 1) - 1;
  grid.width = columns * (cell.width + 1) - 1;
  grid.channels = cell.channels;
  grid.pixels.assign(static_cast<size_t>(grid.height * grid.width * grid.channels), 0);
  for (int64_t i = 0; i < count; ++i) {
    paste(pictures[static_cast<size_t>(i)],
          grid,
          i / columns * (cell.height + 1),
          i % columns * (cell.width + 1));
  }
  return grid;
}

std::string picture_text(const Picture& picture, int columns, bool in_colour) {
  const int64_t width = std::min<int64_t>(columns, picture.width);
  const double step = static_cast<double>(picture.width) / static_cast<double>(width);
  const auto lines =
      static_cast<int64_t>(std::ceil(static_cast<double>(picture.height) / (2 * step)));
  std::string text;
  for (int64_t line = 0; line < lines; ++line) {
    const double top = static_cast<double>(line) * 2 * step;
    for (int64_t x = 0; x < width; ++x) {
      const double left = static_cast<double>(x) * step;
      if (in_colour) {
        const Colour upper = mean_colour(picture, top, top + step, left, left + step);
        const Colour lower = mean_colour(picture, top + step, top + 2 * step, left, left + step);
        text += fmt::format("\033[38;2;{};{};{}m\033[48;2;{};{};{}m▀",
                            upper[0],
                            upper[1],
                            upper[2],
                            lower[0],
                            lower[1],
                            lower[2]);
      } else {
        text += letter_of(mean_colour(picture, top, top + 2 * step, left, left + step));
      }
    }
    text += in_colour ? "\033[0m\n" : "\n";
  }
  return text;
}

}  // namespace rondo
