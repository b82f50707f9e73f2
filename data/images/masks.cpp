#include "data/images/masks.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/home_path.h"
#include "core/require.h"
#include "data/images/decode.h"
#include "data/images/turn.h"
#include "data/internal/learnt.h"
#include "data/internal/read_file.h"

namespace rondo {

namespace {

constexpr int64_t kUnknown = -1;
constexpr size_t kValues = 1 << 16;  // of 16 bits

/// The class of each value: of the file's values in order, or the value itself.
class ClassTable {
 public:
  explicit ClassTable(std::string owner)
      : owner_(std::move(owner)), classes_(kValues, kUnknown), is_given_(kValues) {}

  void set(int64_t value, int64_t number) {
    detail::require(value >= 0 && value < static_cast<int64_t>(kValues),
                    owner_ + ": values of masks",
                    "in [0, 65535]",
                    value);
    const auto at = static_cast<size_t>(value);
    detail::require(!is_given_[at], owner_ + ": values of masks", "given once", value);
    is_given_[at] = true;
    classes_[at] = number;
  }

  /// Gives the values that are not set their own number, below `count` where that is not 0.
  void fill(int64_t count) {
    for (size_t value = 0; value < kValues; ++value) {
      const auto number = static_cast<int64_t>(value);
      if (!is_given_[value] && (count == 0 || number < count)) {
        classes_[value] = number;
      }
    }
  }

  std::vector<int64_t> take() { return std::move(classes_); }

 private:
  std::string owner_;
  std::vector<int64_t> classes_;
  std::vector<bool> is_given_;
};

int64_t value_at(const Image& mask, int64_t y, int64_t x) {
  const auto at = static_cast<size_t>(y * mask.width + x);
  if (!mask.is_wide) {
    return mask.bytes[at];
  }
  uint16_t value = 0;
  std::memcpy(&value, mask.bytes.data() + at * sizeof value, sizeof value);
  return value;
}

/// The pixel of the mask that a pixel of the sample shows.
class Source {
 public:
  Source(const Image& mask, const PictureView& view, int64_t height, int64_t width)
      : mask_(mask),
        view_(view),
        height_(height),
        width_(width),
        turn_(view.move.degrees, height, width) {}

  struct Pixel {
    int64_t y = 0;
    int64_t x = 0;
  };

  /// \return false for what comes in at an edge
  bool find(int64_t y, int64_t x, Pixel& found) const {
    y -= view_.move.down;
    x -= view_.move.right;
    if (!is_inside(y, x)) {
      return false;
    }
    if (view_.move.degrees != 0.0) {
      const detail::Place place = turn_.source_of(y, x);
      y = std::llround(place.y);
      x = std::llround(place.x);
      if (!is_inside(y, x)) {
        return false;
      }
    }
    x = view_.is_mirrored ? width_ - 1 - x : x;
    found.y = scaled(y, height_, view_.box.top, view_.box.height, mask_.height);
    found.x = scaled(x, width_, view_.box.left, view_.box.width, mask_.width);
    return true;
  }

 private:
  bool is_inside(int64_t y, int64_t x) const {
    return y >= 0 && y < height_ && x >= 0 && x < width_;
  }

  /// Along one side: the pixel that the middle of another lies in.
  static int64_t scaled(int64_t at, int64_t count, double from, double share, int64_t size) {
    const double middle = (static_cast<double>(at) + 0.5) / static_cast<double>(count);
    const double place = (from + middle * share) * static_cast<double>(size);
    return std::clamp<int64_t>(static_cast<int64_t>(std::floor(place)), 0, size - 1);
  }

  const Image& mask_;
  const PictureView& view_;
  int64_t height_;
  int64_t width_;
  detail::Turn turn_;
};

}  // namespace

Masks::Masks(std::string owner, const MaskOptions& options, const std::filesystem::path& base)
    : owner_(std::move(owner)), classes_(options.classes), values_(options.values) {
  const std::string files = expand_home(options.files).string();
  const size_t star = files.find('*');
  before_ = base / files.substr(0, star);
  after_ = star == std::string::npos ? ".png" : files.substr(star + 1);
  if (star == std::string::npos) {
    before_ /= "";
  }
  const auto values = static_cast<int64_t>(options.values.size());
  const auto names = static_cast<int64_t>(options.classes.size());
  detail::require(values == 0 || names == 0 || values == names,
                  owner_ + ": values of masks",
                  fmt::format("one for each of {} classes", names),
                  values);
  count_ = std::max(values, names);
  ClassTable table(owner_);
  for (size_t i = 0; i < options.values.size(); ++i) {
    table.set(options.values[i], static_cast<int64_t>(i));
  }
  for (const int64_t value : options.ignored) {
    table.set(value, kIgnored);
  }
  if (values == 0) {
    table.fill(count_);
  }
  class_of_ = table.take();
}

std::filesystem::path Masks::path_of(const std::filesystem::path& inside) const {
  std::filesystem::path stem = inside;
  stem.replace_extension();
  return before_.string() + stem.string() + after_;
}

StateDict Masks::fitted() const {
  return {{"type", owner_},
          {"mask_classes", detail::list_of(classes_)},
          {"mask_values", StateList(values_.begin(), values_.end())}};
}

void Masks::require_classes_of(const StateDict& fitted) const {
  detail::require_learnt_by(owner_, fitted);
  if (fitted.find("mask_values") == nullptr) {
    throw DataError(owner_ + ": training had labels, and this data has masks");
  }
  std::vector<int64_t> values;
  for (const StateValue& value : fitted.at("mask_values").as_list()) {
    values.push_back(value.as_int());
  }
  const std::vector<std::string> classes = detail::texts_of(fitted.at("mask_classes"));
  if (values != values_ || classes != classes_) {
    throw DataError(fmt::format(
        "{}: training had masks.values = [{}] and masks.classes = [{}], and this data has others",
        owner_,
        fmt::join(values, ", "),
        fmt::join(classes, ", ")));
  }
}

at::Tensor Masks::read(const std::filesystem::path& path,
                       const ImageSize& picture,
                       const PictureView& view,
                       int64_t height,
                       int64_t width) const {
  const std::string name = path.string();
  const Image mask = decode_mask(name, detail::read_data_file(path));
  if (mask.height != picture.height || mask.width != picture.width) {
    throw DataError(
        fmt::format("{}: the mask has {} x {} pixels, its picture {} x {} as it is "
                    "shown, after the turn that EXIF asks for",
                    name,
                    mask.height,
                    mask.width,
                    picture.height,
                    picture.width));
  }
  const Source source(mask, view, height, width);
  at::Tensor classes = at::empty({height, width}, at::kLong);
  auto* to = classes.data_ptr<int64_t>();
  Source::Pixel pixel;
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x, ++to) {
      if (!source.find(y, x, pixel)) {
        *to = kIgnored;
        continue;
      }
      const int64_t value = value_at(mask, pixel.y, pixel.x);
      *to = class_of_[static_cast<size_t>(value)];
      if (*to == kUnknown) {
        throw UsageError(fmt::format(
            "{}: row {}, pixel {}: no class has the value {}; set masks.values, or masks.ignored",
            name,
            pixel.y,
            pixel.x,
            value));
      }
    }
  }
  return classes;
}

}  // namespace rondo
