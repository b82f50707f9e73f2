#include "data/images/idx_images.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/registry.h"
#include "core/require.h"
#include "data/data_dir.h"
#include "data/internal/read_file.h"
#include "data/internal/rows.h"
#include "data/register.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

constexpr const char* kDigits = "0123456789";
constexpr const char* kCapitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr const char* kMerged = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabdefghnqrt";
constexpr const char* kAll = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// How a family of files is made.
struct IdxLayout {
  const char* name;
  const char* characters;  // of the classes, in the order of their numbers
  int first_label = 0;
};

constexpr IdxLayout kLayouts[] = {{"mnist", kDigits},
                                  {"emnist_balanced", kMerged},
                                  {"emnist_byclass", kAll},
                                  {"emnist_bymerge", kMerged},
                                  {"emnist_digits", kDigits},
                                  {"emnist_letters", kCapitals, 1},
                                  {"emnist_mnist", kDigits}};

std::vector<std::string> layout_names() {
  std::vector<std::string> names;
  for (const IdxLayout& layout : kLayouts) {
    names.emplace_back(layout.name);
  }
  return names;
}

/// Null where there is none of this name.
const IdxLayout* find_layout(const std::string& name) {
  for (const IdxLayout& layout : kLayouts) {
    if (name == layout.name) {
      return &layout;
    }
  }
  return nullptr;
}

/// "letters" of "emnist_letters"; "" of MNIST itself.
std::string emnist_set(const IdxImages::Options& options) {
  const size_t line = options.layout.find('_');
  return line == std::string::npos ? "" : options.layout.substr(line + 1);
}

/// A whole idx file of unsigned bytes: four bytes of magic, a big-endian uint32 for each dimension,
/// the values.
struct IdxFile {
  fs::path path;
  std::vector<int64_t> shape;
  std::string bytes;

  size_t header_size() const { return 4 + 4 * shape.size(); }
};

uint32_t big_endian(std::string_view bytes, size_t offset) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) {
    value = value << 8 | static_cast<unsigned char>(bytes[offset + i]);
  }
  return value;
}

IdxFile read_idx(const fs::path& path, uint32_t dimensions) {
  IdxFile file{path, {}, detail::read_data_file(path)};
  const size_t header = 4 + 4 * size_t{dimensions};
  if (file.bytes.size() < header) {
    throw DataError(fmt::format("{}: offset {}: the file ends inside the header of {} bytes",
                                path.string(),
                                file.bytes.size(),
                                header));
  }
  const uint32_t magic = big_endian(file.bytes, 0);
  const uint32_t expected = 0x0800 | dimensions;  // 8: unsigned bytes
  if (magic != expected) {
    throw DataError(
        fmt::format("{}: offset 0: expected the magic number 0x{:08x} (idx, unsigned bytes, {} "
                    "dimensions), got "
                    "0x{:08x}",
                    path.string(),
                    expected,
                    dimensions,
                    magic));
  }
  double promised = 1;  // in double: a damaged header can promise more than 64 bits hold
  for (uint32_t i = 0; i < dimensions; ++i) {
    file.shape.push_back(big_endian(file.bytes, 4 + 4 * size_t{i}));
    promised *= static_cast<double>(file.shape.back());
  }
  const size_t found = file.bytes.size() - header;
  if (promised != static_cast<double>(found)) {
    throw DataError(
        fmt::format("{}: offset {}: the header promises {:.0f} bytes, the file holds {}",
                    path.string(),
                    header,
                    promised,
                    found));
  }
  return file;
}

DataFile file_of(const IdxImages::Options& options, const std::string& name, const char* kind) {
  const std::string set = emnist_set(options);
  const std::string prefix = !set.empty() ? fmt::format("emnist-{}-{}", set, options.split)
                             : options.split == "train" ? "train"
                                                        : "t10k";
  const std::string own_folder = set.empty() ? "mnist" : "emnist";
  const std::string folder = options.folder.empty() ? own_folder : options.folder;
  std::string base = name.empty() ? fmt::format("{}-{}-ubyte", prefix, kind) : name;
  if (base.size() > 3 && base.substr(base.size() - 3) == ".gz") {
    base.resize(base.size() - 3);
  }
  const std::string source =
      folder == "mnist" ? base +
                              ".gz of the MNIST database of handwritten digits "
                              "(yann.lecun.com/exdb/mnist, mirrored at "
                              "ossci-datasets.s3.amazonaws.com/mnist)"
      : folder == "emnist" ? base +
                                 ".gz of EMNIST (www.nist.gov/itl/products-and-services/"
                                 "emnist-dataset, the file gzip.zip)"
                           : "";
  return {"IdxImages", {base, base + ".gz"}, folder, source};
}

void check(const IdxImages::Options& options) {
  detail::require(options.split == "train" || options.split == "test",
                  "IdxImages: split",
                  "\"train\" or \"test\"",
                  options.split);
  detail::require(find_layout(options.layout) != nullptr,
                  "IdxImages: layout",
                  fmt::format("one of [{}]", fmt::join(layout_names(), ", ")),
                  options.layout);
  const int64_t classes = options.classes.value_or(1);
  detail::require(classes >= 1 && classes <= 256, "IdxImages: classes", "in [1, 256]", classes);
  detail::require(options.std > 0, "IdxImages: std", "> 0", options.std);
}

/// Has labels begin at 0. \throws DataError  naming the offset of one that is no class
void number_from_zero(IdxFile& labels, int64_t first, int64_t classes) {
  for (size_t i = labels.header_size(); i < labels.bytes.size(); ++i) {
    const int64_t label = static_cast<unsigned char>(labels.bytes[i]);
    if (label < first || label >= first + classes) {
      throw DataError(fmt::format("{}: offset {}: expected a label {}below {}, got {}",
                                  labels.path.string(),
                                  i,
                                  first > 0 ? fmt::format("from {} on and ", first) : "",
                                  first + classes,
                                  label));
    }
    labels.bytes[i] = static_cast<char>(label - first);
  }
}

/// Pictures that are stored by columns as rows.
std::vector<uint8_t> by_rows(const std::vector<uint8_t>& pixels, int64_t columns, int64_t height) {
  std::vector<uint8_t> turned(pixels.size());
  const auto plane = static_cast<size_t>(columns * height);
  for (size_t image = 0; image < pixels.size(); image += plane) {
    for (int64_t x = 0; x < columns; ++x) {
      for (int64_t y = 0; y < height; ++y) {
        turned[image + static_cast<size_t>(y * columns + x)] =
            pixels[image + static_cast<size_t>(x * height + y)];
      }
    }
  }
  return turned;
}

DatasetFacts facts_of(const IdxImages::Options& options, const IdxLayout& layout) {
  const std::string characters = layout.characters;
  DatasetFacts facts;
  facts.classes = options.classes.value_or(static_cast<int64_t>(characters.size()));
  const bool names_all = *facts.classes == static_cast<int64_t>(characters.size());
  for (const char character : characters) {
    if (names_all && !emnist_set(options).empty()) {
      facts.class_names.emplace_back(1, character);
    }
  }
  return facts;
}

/// The bytes of the elements [first, end) of the first dimension.
std::vector<uint8_t> slice(const IdxFile& file, std::pair<int64_t, int64_t> range) {
  int64_t element = 1;
  for (size_t i = 1; i < file.shape.size(); ++i) {
    element *= file.shape[i];
  }
  const auto begin = file.bytes.begin() + static_cast<int64_t>(file.header_size());
  return {begin + range.first * element, begin + range.second * element};
}

}  // namespace

IdxImages::IdxImages(const Options& options) {
  check(options);
  const IdxLayout& layout = *find_layout(options.layout);
  facts_ = facts_of(options, layout);
  const IdxFile pixels = read_idx(
      find_data_file(options.data_dir, file_of(options, options.images, "images-idx3")), 3);
  IdxFile labels = read_idx(
      find_data_file(options.data_dir, file_of(options, options.labels, "labels-idx1")), 1);
  if (pixels.shape[0] != labels.shape[0]) {
    throw DataError(fmt::format("{}: offset 4: {} images, but {} labels in {}",
                                pixels.path.string(),
                                pixels.shape[0],
                                labels.shape[0],
                                labels.path.string()));
  }
  number_from_zero(labels, layout.first_label, *facts_.classes);
  const auto range =
      detail::checked_range("IdxImages", options.first, options.count, pixels.shape[0]);
  images_.shape = {1, pixels.shape[1], pixels.shape[2]};
  images_.values = {pixel_values(options.mean, options.std)};
  images_.pixels = slice(pixels, range);
  images_.labels = slice(labels, range);
  if (!emnist_set(options).empty()) {
    images_.shape = {1, pixels.shape[2], pixels.shape[1]};
    images_.pixels = by_rows(images_.pixels, pixels.shape[1], pixels.shape[2]);
  }
  facts_.image_shape = images_.shape;
}

Sample IdxImages::get(int64_t index) const {
  return detail::only_sample(get_batch({index}));
}

Batch IdxImages::get_batch(const std::vector<int64_t>& indices) const {
  return images_.gather(indices);
}

void register_idx_images(Registry<DataSource>& registry) {
  using Options = IdxImages::Options;
  registry
      .add<IdxImages>("IdxImages", "Labelled grey images in idx files: MNIST and its relatives.")
      .key("layout",
           &Options::layout,
           one_of(layout_names()),
           "how the files are called and made; EMNIST's pictures are turned, its letters numbered "
           "from 0")
      .key("split", &Options::split, one_of({"train", "test"}), "which of the file names")
      .key("first", &Options::first, at_least(0), "number of the first image that is used")
      .key("count", &Options::count, at_least(1), "images from there; all when absent")
      .key("data_dir", &Options::data_dir, "directory of the files; else RONDO_DATA")
      .key("folder",
           &Options::folder,
           "folder of data_dir that is searched too; mnist or emnist when empty")
      .key("images", &Options::images, "file of the images, with or without .gz; else split's")
      .key("labels", &Options::labels, "file of the labels, with or without .gz; else split's")
      .key("classes",
           &Options::classes,
           between(1, 256),
           "labels are below it; as many as the layout has when absent")
      .key("mean", &Options::mean, "what is subtracted from the pixels, which are in [0, 1]")
      .key("std", &Options::std, greater_than(0), "what the result is divided by");
}

}  // namespace rondo
