#include "data/images/image_folder.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/home_path.h"
#include "core/random.h"
#include "core/require.h"
#include "data/data_dir.h"
#include "data/images/decode.h"
#include "data/images/image_box.h"
#include "data/images/resample.h"
#include "data/internal/read_file.h"
#include "data/internal/rows.h"
#include "data/internal/samples.h"

namespace rondo {

namespace {

void check(const ImageFolder::Options& options) {
  const bool has_masks = options.labelled && options.masks.are_there();
  const auto fits_channels = [&](const std::vector<double>& numbers) {
    return numbers.empty() || static_cast<int64_t>(numbers.size()) == options.channels;
  };
  detail::require(!options.root.empty(), "ImageFolder: root", "given", "\"\"");
  detail::require(!has_masks || (options.classes.empty() && options.labels_file.empty()),
                  "ImageFolder: classes and labels_file",
                  "none where there are masks, whose classes are masks.classes",
                  fmt::format("{} classes, \"{}\"", options.classes.size(), options.labels_file));
  detail::require(options.height >= 1, "ImageFolder: height", ">= 1", options.height);
  detail::require(options.width >= 1, "ImageFolder: width", ">= 1", options.width);
  detail::require(
      options.max_damaged >= 0, "ImageFolder: max_damaged", ">= 0", options.max_damaged);
  detail::require(options.channels == 1 || options.channels == 3,
                  "ImageFolder: channels",
                  "1 or 3",
                  options.channels);
  detail::require(options.crop == "center" || options.crop == "random" || options.crop == "none",
                  "ImageFolder: crop",
                  R"("center", "random" or "none")",
                  options.crop);
  detail::require(options.min_area > 0 && options.min_area <= 1,
                  "ImageFolder: min_area",
                  "in (0, 1]",
                  options.min_area);
  detail::require(
      options.flip >= 0 && options.flip <= 1, "ImageFolder: flip", "in [0, 1]", options.flip);
  check_changes("ImageFolder", options.changes, options.channels);
  detail::require(fits_channels(options.mean),
                  "ImageFolder: mean",
                  "a number for each channel",
                  fmt::format("{}", fmt::join(options.mean, ", ")));
  const bool is_positive =
      std::all_of(options.std.begin(), options.std.end(), [](double std) { return std > 0; });
  detail::require(fits_channels(options.std) && is_positive,
                  "ImageFolder: std",
                  "a number > 0 for each channel",
                  fmt::format("{}", fmt::join(options.std, ", ")));
}

/// A folder below `root` would be a class.
void require_apart(const std::string& cache, const std::filesystem::path& root) {
  std::error_code error;
  const auto inside = std::filesystem::weakly_canonical(expand_home(cache), error)
                          .lexically_relative(std::filesystem::weakly_canonical(root, error));
  detail::require(inside.empty() || *inside.begin() == "..",
                  "ImageFolder: cache.folder",
                  "outside of root",
                  cache);
}

void mirror(float* pixels, int64_t rows, int64_t width) {
  for (int64_t y = 0; y < rows; ++y) {
    std::reverse(pixels + y * width, pixels + (y + 1) * width);
  }
}

void normalise(float* pixels, int64_t count, double mean, double std) {
  const auto offset = static_cast<float>(mean);
  const auto scale = static_cast<float>(1.0 / std);
  for (int64_t i = 0; i < count; ++i) {
    pixels[i] = (pixels[i] - offset) * scale;
  }
}

}  // namespace

ImageFolder::ImageFolder(const Options& options) : options_(options) {
  check(options_);
  files_ = ClassFolders::list({"ImageFolder",
                               options_.root,
                               options_.classes,
                               {".jpg", ".jpeg", ".png", ".webp"},
                               options_.data_dir,
                               has_labels(),
                               options_.labels_file,
                               options_.split});
  if (options_.cache.is_there()) {
    require_apart(options_.cache.folder, files_.root);
    cache_ = std::make_shared<PictureCache>(options_.cache, options_.channels);
  }
  if (has_masks()) {
    masks_.emplace("ImageFolder", options_.masks, options_.data_dir.value_or(default_data_dir()));
    require_masks();
  }
}

void ImageFolder::require_masks() const {
  std::vector<std::string> missing;
  for (int64_t i = 0; i < size(); ++i) {
    const std::filesystem::path path = masks_->path_of(files_.name(i));
    std::error_code error;
    if (std::filesystem::equivalent(path, files_[i].path, error)) {
      throw DataError(fmt::format(
          "ImageFolder: {} is listed as a picture and is a mask: root must hold pictures alone",
          path.string()));
    }
    if (!std::filesystem::is_regular_file(path, error)) {
      missing.push_back(path.string());
    }
  }
  if (!missing.empty()) {
    throw DataError(
        fmt::format("ImageFolder: {} of {} pictures have no mask, where root must hold "
                    "pictures alone; first of these masks: {}",
                    missing.size(),
                    size(),
                    missing.front()));
  }
}

/// Classes without decoding a picture.
std::vector<double> ImageFolder::numbers(const std::string& name) const {
  return name == "label" && has_labels() ? files_.labels() : Dataset::numbers(name);
}

void ImageFolder::take_fitted(const StateDict& fitted) {
  if (masks_) {
    masks_->require_classes_of(fitted);
  } else if (fitted.find("mask_values") == nullptr) {
    files_.take_fitted(fitted);
  } else if (has_labels()) {
    throw DataError("ImageFolder: training had masks, and this data has labels");
  }
}

DatasetFacts ImageFolder::facts() const {
  DatasetFacts facts = files_.facts();
  facts.image_shape = {options_.channels, options_.height, options_.width};
  if (masks_ && masks_->count_of_classes() > 0) {
    facts.classes = masks_->count_of_classes();
    facts.class_names = options_.masks.classes;
  }
  return facts;
}

Sample ImageFolder::get(int64_t index) const {
  return sample(index, 0);
}

Batch ImageFolder::get_epoch_batch(const std::vector<int64_t>& indices, int64_t epoch) const {
  std::vector<Sample> samples;
  samples.reserve(indices.size());
  for (const int64_t index : indices) {
    samples.push_back(sample(index, epoch));
  }
  return detail::stack_samples(samples, indices);
}

std::vector<std::pair<std::string, double>> ImageFolder::counts() const {
  if (options_.max_damaged == 0) {
    return {};
  }
  const std::lock_guard lock(mutex_);
  return {{"damaged", static_cast<double>(left_out_.size())}};
}

/// Notes a damaged file. \throws DataError  nesting what is wrong with it, when there are too many
void ImageFolder::leave_out(int64_t file) const {
  const std::lock_guard lock(mutex_);
  left_out_.insert(file);
  if (static_cast<int64_t>(left_out_.size()) > options_.max_damaged) {
    std::throw_with_nested(
        DataError(fmt::format("ImageFolder: {} files are damaged, max_damaged is {}",
                              left_out_.size(),
                              options_.max_damaged)));
  }
}

/// The same picture for the same numbers, whatever was asked for before: the next whole one.
Sample ImageFolder::sample(int64_t index, int64_t epoch) const {
  detail::check_index(index, size());
  for (int64_t file = index;; file = (file + 1) % size()) {
    try {
      return read(file, index, epoch);
    } catch (const DataError&) {
      if (options_.max_damaged == 0 || (file + 1) % size() == index) {
        throw;
      }
      leave_out(file);
    }
  }
}

PictureView ImageFolder::draw_view(const ImageSize& size, KeyedRandom& random) const {
  PictureView view;
  view.is_mirrored = random.uniform() < options_.flip;
  if (options_.crop == "random") {
    view.box = random_box(size, options_.min_area, random);
  } else if (options_.crop == "center") {
    view.box = center_box(size.height, size.width, options_.height, options_.width);
  }
  view.move = draw_move(options_.changes, random);
  return view;
}

at::Tensor ImageFolder::pixels_of(const Image& image,
                                  const PictureView& view,
                                  KeyedRandom& random) const {
  at::Tensor pixels = at::empty({options_.channels, options_.height, options_.width}, at::kFloat);
  float* const values = pixels.data_ptr<float>();
  resample(image, view.box, options_.height, options_.width, values);
  if (view.is_mirrored) {
    mirror(values, options_.channels * options_.height, options_.width);
  }
  const Pixels changed{values, options_.channels, options_.height, options_.width};
  move_picture(view.move, changed);
  change_colours(options_.changes, random, changed);
  const int64_t plane = options_.height * options_.width;
  for (int64_t c = 0; c < options_.channels; ++c) {
    const auto channel = static_cast<size_t>(c);
    normalise(values + c * plane,
              plane,
              options_.mean.empty() ? 0.0 : options_.mean[channel],
              options_.std.empty() ? 1.0 : options_.std[channel]);
  }
  return pixels;
}

Sample ImageFolder::read(int64_t number, int64_t index, int64_t epoch) const {
  const ClassFolders::File& file = files_[number];
  KeyedRandom random(
      options_.augment_seed, static_cast<uint64_t>(epoch), static_cast<uint64_t>(index));
  ImageSize size;
  PictureView view;
  Sample sample;
  if (cache_ != nullptr) {
    const PictureCache::Kept kept = cache_->picture(file.path);
    size = kept.size;
    view = draw_view(size, random);
    sample.set("image", pixels_of(kept.image, view, random));
  } else {
    const std::string name = file.path.string();
    const std::string bytes = detail::read_data_file(file.path);
    size = image_size(name, bytes);
    view = draw_view(size, random);
    const int64_t shrink = shrink_for(size, view.box, options_.height, options_.width);
    const Image image = decode_image(name, bytes, options_.channels, shrink);
    sample.set("image", pixels_of(image, view, random));
  }
  if (masks_) {
    const std::filesystem::path mask = masks_->path_of(files_.name(number));
    sample.set("mask", masks_->read(mask, size, view, options_.height, options_.width));
  } else if (options_.labelled) {
    sample.set("label", at::full({}, file.label, at::kLong));
  }
  return sample;
}

}  // namespace rondo
