// The keys of ImageFolder in a config.

#include <optional>
#include <string>
#include <vector>

#include "core/registry.h"
#include "data/images/image_folder.h"
#include "data/optional_reader.h"
#include "data/register.h"

namespace rondo {

namespace {

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

KeyTable<MaskOptions> mask_keys() {
  KeyTable<MaskOptions> keys;
  keys.key("files",
           &MaskOptions::files,
           "folder with a PNG file for each picture, at the same path but for the ending; or "
           "\"labels/*_mask.png\", where * stands for that path")
      .key("classes", &MaskOptions::classes, "names of the classes, by their numbers")
      .key("values",
           &MaskOptions::values,
           "of the classes 0, 1, … in a file: greys or numbers of a palette; none: 0, 1, …")
      .key("ignored", &MaskOptions::ignored, "values whose pixels do not count, as -100");
  return keys;
}

KeyTable<PictureCacheOptions> picture_cache_keys() {
  KeyTable<PictureCacheOptions> keys;
  keys.key("folder", &PictureCacheOptions::folder, "where they are kept; \"\": nowhere")
      .key("side",
           &PictureCacheOptions::side,
           at_least(0),
           "pixels that the shorter side of larger pictures is scaled to; 0: they are kept as they "
           "are");
  return keys;
}

}  // namespace

void register_image_folder(Registry<DataSource>& registry) {
  using Options = ImageFolder::Options;
  registry
      .add<ImageFolder>(
          "ImageFolder",
          "JPEG, PNG and WebP files in folders named after their class, or with masks." +
              not_built_note("WEBP"))
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
      .table("masks", &Options::masks, mask_keys(), "instead of classes: one for each pixel")
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
      .table("cache", &Options::cache, picture_cache_keys(), "keeps decoded pictures in files")
      .key("max_damaged",
           &Options::max_damaged,
           at_least(0),
           "damaged files that are left out, each for the next whole picture; more are an error")
      .key("data_dir", &Options::data_dir, "directory that holds root; else RONDO_DATA");
}

}  // namespace rondo
