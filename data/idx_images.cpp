#include "data/idx_images.h"

#include <fmt/format.h>

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
  const std::string prefix = options.split == "train" ? "train" : "t10k";
  std::string base = name.empty() ? fmt::format("{}-{}-ubyte", prefix, kind) : name;
  if (base.size() > 3 && base.substr(base.size() - 3) == ".gz") {
    base.resize(base.size() - 3);
  }
  const std::string source =
      options.folder == "mnist"
          ? base +
                ".gz of the MNIST database of handwritten digits (yann.lecun.com/exdb/mnist, "
                "mirrored at ossci-datasets.s3.amazonaws.com/mnist)"
          : "";
  return {"IdxImages", {base, base + ".gz"}, options.folder, source};
}

void check(const IdxImages::Options& options) {
  detail::require(options.split == "train" || options.split == "test",
                  "IdxImages: split",
                  "\"train\" or \"test\"",
                  options.split);
  detail::require(options.classes >= 1 && options.classes <= 256,
                  "IdxImages: classes",
                  "in [1, 256]",
                  options.classes);
  detail::require(options.std > 0, "IdxImages: std", "> 0", options.std);
}

void check_labels(const IdxFile& labels, int64_t classes) {
  for (size_t i = labels.header_size(); i < labels.bytes.size(); ++i) {
    const auto label = static_cast<unsigned char>(labels.bytes[i]);
    if (label >= classes) {
      throw DataError(fmt::format("{}: offset {}: expected a label below {}, got {}",
                                  labels.path.string(),
                                  i,
                                  classes,
                                  label));
    }
  }
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

IdxImages::IdxImages(const Options& options) : classes_(options.classes) {
  check(options);
  const IdxFile pixels = read_idx(
      find_data_file(options.data_dir, file_of(options, options.images, "images-idx3")), 3);
  const IdxFile labels = read_idx(
      find_data_file(options.data_dir, file_of(options, options.labels, "labels-idx1")), 1);
  if (pixels.shape[0] != labels.shape[0]) {
    throw DataError(fmt::format("{}: offset 4: {} images, but {} labels in {}",
                                pixels.path.string(),
                                pixels.shape[0],
                                labels.shape[0],
                                labels.path.string()));
  }
  check_labels(labels, options.classes);
  const auto range =
      detail::checked_range("IdxImages", options.first, options.count, pixels.shape[0]);
  images_.shape = {1, pixels.shape[1], pixels.shape[2]};
  images_.values = {pixel_values(options.mean, options.std)};
  images_.pixels = slice(pixels, range);
  images_.labels = slice(labels, range);
}

Sample IdxImages::get(int64_t index) const {
  return detail::only_sample(get_batch({index}));
}

Batch IdxImages::get_batch(const std::vector<int64_t>& indices) const {
  return images_.gather(indices);
}

DatasetFacts IdxImages::facts() const {
  DatasetFacts facts;
  facts.classes = classes_;
  facts.image_shape = images_.shape;
  return facts;
}

void register_idx_images(Registry<DataSource>& registry) {
  using Options = IdxImages::Options;
  registry
      .add<IdxImages>("IdxImages", "Labelled grey images in idx files: MNIST and its relatives.")
      .key("split", &Options::split, one_of({"train", "test"}), "which of MNIST's file names")
      .key("first", &Options::first, at_least(0), "number of the first image that is used")
      .key("count", &Options::count, at_least(1), "images from there; all when absent")
      .key("data_dir", &Options::data_dir, "directory of the files; else RONDO_DATA")
      .key("folder", &Options::folder, "folder of data_dir that is searched too")
      .key("images", &Options::images, "file of the images, with or without .gz; else split's")
      .key("labels", &Options::labels, "file of the labels, with or without .gz; else split's")
      .key("classes", &Options::classes, between(1, 256), "labels are below it")
      .key("mean", &Options::mean, "what is subtracted from the pixels, which are in [0, 1]")
      .key("std", &Options::std, greater_than(0), "what the result is divided by");
}

}  // namespace rondo
