#include "data/images/image_folder.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/random.h"
#include "core/registry.h"
#include "core/require.h"
#include "data/images/decode.h"
#include "data/images/resample.h"
#include "data/internal/read_file.h"
#include "data/internal/rows.h"
#include "data/internal/samples.h"
#include "data/optional_reader.h"
#include "data/register.h"

namespace rondo {

namespace {

void check(const ImageFolder::Options& options) {
  const auto fits_channels = [&](const std::vector<double>& numbers) {
    return numbers.empty() || static_cast<int64_t>(numbers.size()) == options.channels;
  };
  detail::require(!options.root.empty(), "ImageFolder: root", "given", "\"\"");
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

/// A part of random size, shape and place; the middle one when ten tries do not fit, as torchvision
/// does it.
ImageBox random_box(const ImageSize& size, double min_area, KeyedRandom& random) {
  constexpr double kMostStretched = 4.0 / 3.0;
  constexpr int kTries = 10;
  const double whole = static_cast<double>(size.height) * static_cast<double>(size.width);
  for (int i = 0; i < kTries; ++i) {
    const double area = random.uniform(min_area, 1.0) * whole;
    const double ratio =
        std::exp(random.uniform(-std::log(kMostStretched), std::log(kMostStretched)));
    const double height = std::sqrt(area / ratio) / static_cast<double>(size.height);
    const double width = std::sqrt(area * ratio) / static_cast<double>(size.width);
    if (height <= 1.0 && width <= 1.0) {
      return {random.uniform(0.0, 1.0 - height), random.uniform(0.0, 1.0 - width), height, width};
    }
  }
  return center_box(size.height, size.width, 1, 1);
}

/// How much smaller a JPEG may be decoded: what is taken of it still has the pixels of the result.
int64_t shrink_for(const ImageSize& size, const ImageBox& box, int64_t height, int64_t width) {
  const double high = box.height * static_cast<double>(size.height) / static_cast<double>(height);
  const double wide = box.width * static_cast<double>(size.width) / static_cast<double>(width);
  int64_t shrink = 1;
  while (shrink < 8 && std::min(high, wide) >= static_cast<double>(shrink * 2)) {
    shrink *= 2;
  }
  return shrink;
}

void mirror(float* pixels, int64_t rows, int64_t width) {
  for (int64_t y = 0; y < rows; ++y) {
    std::reverse(pixels + y * width, pixels + (y + 1) * width);
  }
}

/// A number for each channel, or those of ImageNet's training pictures, with which most models were
/// trained. Source: torchvision's reference training.
struct ChannelNumbersOption {
  std::vector<double> imagenet;

  static std::string name() { return "a list of numbers, or \"imagenet\""; }

  std::optional<std::vector<double>> read(const ConfigValue& value, FaultSink& faults) const {
    const auto* word = value.get_if<std::string>();
    if (word == nullptr) {
      return OptionType<std::vector<double>>::read(value, faults);
    }
    if (*word != "imagenet") {
      return detail::mismatch(value, name(), faults);
    }
    return imagenet;
  }

  static ConfigValue write(const std::vector<double>& numbers) {
    return OptionType<std::vector<double>>::write(numbers);
  }
};

void normalise(float* pixels, int64_t count, double mean, double std) {
  const auto offset = static_cast<float>(mean);
  const auto scale = static_cast<float>(1.0 / std);
  for (int64_t i = 0; i < count; ++i) {
    pixels[i] = (pixels[i] - offset) * scale;
  }
}

}  // namespace

ImageBox center_box(int64_t image_height, int64_t image_width, int64_t height, int64_t width) {
  const double scale = std::min(static_cast<double>(image_height) / static_cast<double>(height),
                                static_cast<double>(image_width) / static_cast<double>(width));
  ImageBox box;
  box.height = scale * static_cast<double>(height) / static_cast<double>(image_height);
  box.width = scale * static_cast<double>(width) / static_cast<double>(image_width);
  box.top = (1.0 - box.height) / 2;
  box.left = (1.0 - box.width) / 2;
  return box;
}

ImageFolder::ImageFolder(const Options& options) : options_(options) {
  check(options_);
  files_ = ClassFolders::list({"ImageFolder",
                               options_.root,
                               options_.classes,
                               {".jpg", ".jpeg", ".png", ".webp"},
                               options_.data_dir,
                               options_.labelled,
                               options_.labels_file,
                               options_.split});
}

/// Classes without decoding a picture.
std::vector<double> ImageFolder::numbers(const std::string& name) const {
  return name == "label" && options_.labelled ? files_.labels() : Dataset::numbers(name);
}

DatasetFacts ImageFolder::facts() const {
  DatasetFacts facts = files_.facts();
  facts.image_shape = {options_.channels, options_.height, options_.width};
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
      if (options_.max_damaged == 0) {
        throw;
      }
      leave_out(file);
    }
  }
}

Sample ImageFolder::read(int64_t number, int64_t index, int64_t epoch) const {
  const ClassFolders::File& file = files_[number];
  const std::string name = file.path.string();
  const std::string bytes = detail::read_data_file(file.path);
  const ImageSize size = image_size(name, bytes);
  KeyedRandom random(
      options_.augment_seed, static_cast<uint64_t>(epoch), static_cast<uint64_t>(index));
  const bool is_mirrored = random.uniform() < options_.flip;
  ImageBox box;
  if (options_.crop == "random") {
    box = random_box(size, options_.min_area, random);
  } else if (options_.crop == "center") {
    box = center_box(size.height, size.width, options_.height, options_.width);
  }
  const Image image = decode_image(
      name, bytes, options_.channels, shrink_for(size, box, options_.height, options_.width));
  const at::Tensor pixels =
      at::empty({options_.channels, options_.height, options_.width}, at::kFloat);
  float* const values = pixels.data_ptr<float>();
  resample(image, box, options_.height, options_.width, values);
  if (is_mirrored) {
    mirror(values, options_.channels * options_.height, options_.width);
  }
  change_picture(
      options_.changes, random, {values, options_.channels, options_.height, options_.width});
  const int64_t plane = options_.height * options_.width;
  for (int64_t c = 0; c < options_.channels; ++c) {
    const auto channel = static_cast<size_t>(c);
    normalise(values + c * plane,
              plane,
              options_.mean.empty() ? 0.0 : options_.mean[channel],
              options_.std.empty() ? 1.0 : options_.std[channel]);
  }
  Sample sample{{"image", pixels}};
  if (options_.labelled) {
    sample.set("label", at::full({}, file.label, at::kLong));
  }
  return sample;
}

KeyTable<TableSplit> picture_split_keys() {
  KeyTable<TableSplit> keys;
  keys.key("part",
           &TableSplit::part,
           one_of({"train", "val", "test", "all"}),
           "the pictures that are used")
      .key("val", &TableSplit::val, below_one(), "share of the pictures that validate")
      .key("test", &TableSplit::test, below_one(), "share of the pictures that test")
      .key("by", &TableSplit::by, R"("random", "stratified" (by class) or "fold:<k>/<n>")")
      .key("seed", &TableSplit::seed, "another seed chooses other pictures");
  return keys;
}

KeyTable<PictureChanges> change_keys() {
  using Changes = PictureChanges;
  KeyTable<Changes> keys;
  keys.key("rotation",
           &Changes::rotation,
           between(0, 180),
           "degrees that the picture is turned by at most; black comes in at the edges")
      .key("padding",
           &Changes::padding,
           at_least(0),
           "pixels that it is moved by at most along each side; black comes in")
      .key("brightness",
           &Changes::brightness,
           between(0, 1),
           "values are multiplied by 1 minus this to 1 plus this")
      .key("contrast",
           &Changes::contrast,
           between(0, 1),
           "likewise the differences from the picture's mean grey")
      .key("saturation",
           &Changes::saturation,
           between(0, 1),
           "likewise the differences from the grey of each pixel")
      .key("hue",
           &Changes::hue,
           between(0, 0.5),
           "share of the circle of colours that hues are turned by at most");
  return keys;
}

void register_image_folder(Registry<DataSource>& registry) {
  using Options = ImageFolder::Options;
  registry
      .add<ImageFolder>(
          "ImageFolder",
          "JPEG, PNG and WebP files in folders named after their class." + not_built_note("WEBP"))
      .key("root", &Options::root, "folder of the classes' folders, in data_dir where not absolute")
      .required()
      .key("classes",
           &Options::classes,
           "folders, in the order of their numbers; none: all, sorted by name")
      .key("labelled",
           &Options::labelled,
           "false: files without a class, in root and its folders, for predictions")
      .key("labels_file",
           &Options::labels_file,
           "CSV file in root with the columns file and label, instead of folders")
      .table("split", &Options::split, picture_split_keys(), "which pictures are used")
      .key("height", &Options::height, at_least(1), "rows of pixels of a sample")
      .key("width", &Options::width, at_least(1), "pixels of a row")
      .key("channels", &Options::channels, "1: grey; 3: red, green and blue")
      .key("crop",
           &Options::crop,
           one_of({"center", "random", "none"}),
           "the part of a picture that is taken: the largest from its middle, a random one, or all")
      .key("min_area", &Options::min_area, between(0, 1), "least share of a random part")
      .key("flip", &Options::flip, between(0, 1), "chance that left and right are exchanged")
      .table("changes", &Options::changes, change_keys(), "what chance changes of that part")
      .key_of("mean",
              &Options::mean,
              ChannelNumbersOption{{0.485, 0.456, 0.406}},
              "what is subtracted from each channel, which is in [0, 1]; or \"imagenet\"")
      .key_of("std",
              &Options::std,
              ChannelNumbersOption{{0.229, 0.224, 0.225}},
              "what the results are divided by, > 0; or \"imagenet\"")
      .key("augment_seed", &Options::augment_seed, "seed of random parts and exchanges")
      .key("max_damaged",
           &Options::max_damaged,
           at_least(0),
           "damaged files that are left out, each for the next whole picture; more are an error")
      .key("data_dir", &Options::data_dir, "directory that holds root; else RONDO_DATA");
}

}  // namespace rondo
