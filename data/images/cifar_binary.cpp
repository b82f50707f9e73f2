#include "data/images/cifar_binary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"
#include "core/registry.h"
#include "core/require.h"
#include "data/data_dir.h"
#include "data/internal/read_file.h"
#include "data/internal/rows.h"
#include "data/register.h"

namespace rondo {

namespace {

constexpr size_t kPixels = 3 * 32 * 32;

/// How the records of a layout are made up.
struct Layout {
  const char* name;
  const char* folder;
  const char* archive;
  size_t label;   // its place in a record
  size_t labels;  // bytes before the pixels
  unsigned char classes;
  std::vector<std::string> train;
  std::string test;

  size_t record() const { return labels + kPixels; }
};

const std::vector<Layout>& layouts() {
  static const std::vector<Layout> known = {{"cifar10",
                                             "cifar-10-batches-bin",
                                             "cifar-10-binary.tar.gz",
                                             0,
                                             1,
                                             10,
                                             {"data_batch_1.bin",
                                              "data_batch_2.bin",
                                              "data_batch_3.bin",
                                              "data_batch_4.bin",
                                              "data_batch_5.bin"},
                                             "test_batch.bin"},
                                            {"cifar100",
                                             "cifar-100-binary",
                                             "cifar-100-binary.tar.gz",
                                             1,
                                             2,
                                             100,
                                             {"train.bin"},
                                             "test.bin"},
                                            {"cifar100_coarse",
                                             "cifar-100-binary",
                                             "cifar-100-binary.tar.gz",
                                             0,
                                             2,
                                             20,
                                             {"train.bin"},
                                             "test.bin"}};
  return known;
}

const Layout& layout_of(const CifarBinary::Options& options) {
  const auto found = std::find_if(layouts().begin(), layouts().end(), [&](const Layout& layout) {
    return layout.name == options.layout;
  });
  detail::require(found != layouts().end(),
                  "CifarBinary: layout",
                  "\"cifar10\", \"cifar100\" or \"cifar100_coarse\"",
                  options.layout);
  return *found;
}

void check(const CifarBinary::Options& options) {
  detail::require(options.split == "train" || options.split == "test",
                  "CifarBinary: split",
                  "\"train\" or \"test\"",
                  options.split);
  detail::require(options.mean.size() == 3,
                  "CifarBinary: mean",
                  "three numbers",
                  fmt::format("{}", fmt::join(options.mean, ", ")));
  const bool is_positive = std::all_of(
      options.std.begin(), options.std.end(), [](double channel) { return channel > 0; });
  detail::require(options.std.size() == 3 && is_positive,
                  "CifarBinary: std",
                  "three numbers > 0",
                  fmt::format("{}", fmt::join(options.std, ", ")));
}

std::vector<std::string> files_of(const CifarBinary::Options& options, const Layout& layout) {
  if (!options.files.empty()) {
    return options.files;
  }
  return options.split == "test" ? std::vector<std::string>{layout.test} : layout.train;
}

void append_records(const std::filesystem::path& path, const Layout& layout, ByteImages& images) {
  const std::string bytes = detail::read_data_file(path);
  const size_t whole = bytes.size() / layout.record() * layout.record();
  if (bytes.empty() || whole != bytes.size()) {
    throw DataError(fmt::format("{}: offset {}: expected whole records of {} bytes, got {} bytes",
                                path.string(),
                                whole,
                                layout.record(),
                                bytes.size() - whole));
  }
  for (size_t record = 0; record < bytes.size(); record += layout.record()) {
    const auto label = static_cast<unsigned char>(bytes[record + layout.label]);
    if (label >= layout.classes) {
      throw DataError(fmt::format("{}: offset {}: expected a label below {}, got {}",
                                  path.string(),
                                  record + layout.label,
                                  layout.classes,
                                  label));
    }
    const auto pixels = bytes.begin() + static_cast<int64_t>(record + layout.labels);
    images.labels.push_back(label);
    images.pixels.insert(images.pixels.end(), pixels, pixels + kPixels);
  }
}

}  // namespace

CifarBinary::CifarBinary(const Options& options) {
  check(options);
  const Layout& layout = layout_of(options);
  classes_ = layout.classes;
  images_.shape = {3, 32, 32};
  for (size_t channel = 0; channel < 3; ++channel) {
    images_.values.push_back(pixel_values(options.mean[channel], options.std[channel]));
  }
  for (const std::string& name : files_of(options, layout)) {
    const DataFile file{"CifarBinary",
                        {name},
                        options.folder.value_or(layout.folder),
                        std::string(layout.archive) + " of www.cs.toronto.edu/~kriz/cifar.html"};
    append_records(find_data_file(options.data_dir, file), layout, images_);
  }
}

Sample CifarBinary::get(int64_t index) const {
  return detail::only_sample(get_batch({index}));
}

Batch CifarBinary::get_batch(const std::vector<int64_t>& indices) const {
  return images_.gather(indices);
}

DatasetFacts CifarBinary::facts() const {
  DatasetFacts facts;
  facts.classes = classes_;
  facts.image_shape = images_.shape;
  return facts;
}

void register_cifar_binary(Registry<DataSource>& registry) {
  using Options = CifarBinary::Options;
  registry.add<CifarBinary>("CifarBinary", "The binary version of CIFAR-10 or CIFAR-100.")
      .key("layout",
           &Options::layout,
           one_of({"cifar10", "cifar100", "cifar100_coarse"}),
           "what a record holds, with the fine or the coarse labels of CIFAR-100")
      .key("split", &Options::split, one_of({"train", "test"}), "which of CIFAR's file names")
      .key("data_dir", &Options::data_dir, "directory of the files; else RONDO_DATA")
      .key("folder",
           &Options::folder,
           "folder of data_dir that is searched too; the archive's when absent")
      .key("files", &Options::files, "files, read one after the other; else split's")
      .key("mean",
           &Options::mean,
           "what is subtracted from red, green and blue, which are in [0, 1]")
      .key("std", &Options::std, greater_than(0), "what the results are divided by");
}

}  // namespace rondo
