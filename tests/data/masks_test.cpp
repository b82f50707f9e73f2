#include "data/images/masks.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/error.h"
#include "data/data_files.h"
#include "data/image_files.h"
#include "data/images/image_folder.h"
#include "support/contains.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

namespace {

constexpr int64_t kSide = 12;

Image grey(const std::function<int(int64_t, int64_t)>& value, bool is_wide = false) {
  Image image{kSide, kSide, 1, is_wide, {}};
  for (int64_t y = 0; y < kSide; ++y) {
    for (int64_t x = 0; x < kSide; ++x) {
      const int number = value(y, x);
      image.bytes.push_back(static_cast<uint8_t>(number & 0xFF));
      if (is_wide) {
        image.bytes.push_back(static_cast<uint8_t>(number >> 8));
      }
    }
  }
  return image;
}

int half(int64_t y, int64_t) {
  return y < kSide / 2 ? 1 : 2;
}

/// One picture of greys, and its mask.
struct Scene {
  TempDir dir;

  explicit Scene(const std::string& mask, const Image& picture = grey(half)) {
    std::filesystem::create_directories(dir / "photos/day");
    std::filesystem::create_directories(dir / "masks/day");
    write_file(dir / "photos/day/street.png", png_bytes(picture));
    write_file(dir / "masks/day/street.png", mask);
  }

  ImageFolder::Options options() const {
    ImageFolder::Options made;
    made.root = "photos";
    made.masks.files = "masks";
    made.data_dir = dir.path();
    made.height = kSide;
    made.width = kSide;
    made.channels = 1;
    return made;
  }

  std::string error(const ImageFolder::Options& wanted) const {
    return message_of([&] { ImageFolder(wanted).get(0); });
  }
};

at::Tensor halves(int64_t above, int64_t below) {
  return torch::cat({torch::full({kSide / 2, kSide}, above, at::kLong),
                     torch::full({kSide / 2, kSide}, below, at::kLong)});
}

}  // namespace

TEST_SUITE_BEGIN("data/masks");

TEST_CASE("a mask gives each pixel the number that its file stores: greys, wide greys, palettes") {
  const auto large = [](int64_t y, int64_t x) { return half(y, x) * 700; };

  struct Row {
    std::string file;
    int64_t above;
  };

  for (const Row& row : {Row{png_bytes(grey(half)), 1},
                         Row{png_bytes(grey(large, /*is_wide=*/true)), 700},
                         Row{png_bytes_of_palette(grey(half), 2), 1},
                         Row{png_bytes_of_palette(grey(half), 4), 1},
                         Row{png_bytes_of_palette(grey(half), 8), 1}}) {
    CAPTURE(row.above);
    const Scene scene(row.file);
    const Sample sample = ImageFolder(scene.options()).get(0);
    CHECK(sample["mask"].equal(halves(row.above, 2 * row.above)));
    CHECK(sample.find("label") == nullptr);
  }
}

TEST_CASE("values of a file become numbers of classes, and those of no class do not count") {
  const auto values = [](int64_t y, int64_t x) { return x == 0 ? 7 : half(y, x) == 1 ? 255 : 0; };
  const Scene scene(png_bytes(grey(values)));
  auto options = scene.options();
  options.masks.classes = {"road", "sky"};
  options.masks.values = {0, 255};
  options.masks.ignored = {7};
  const ImageFolder data(options);
  at::Tensor expected = halves(1, 0);
  expected.select(1, 0).fill_(-100);
  CHECK(data.get(0)["mask"].equal(expected));
  CHECK(data.facts().classes == 2);
  CHECK(data.facts().class_names == options.masks.classes);
}

TEST_CASE("chance moves a mask with its picture, and what comes in has no class") {
  const auto number = [](int64_t y, int64_t x) { return static_cast<int>(1 + y * kSide + x); };
  const Scene scene(png_bytes(grey(number)), grey(number));
  auto options = scene.options();
  options.flip = 0.5;
  options.changes.padding = 3;
  const ImageFolder data(options);
  for (int64_t epoch = 0; epoch < 20; ++epoch) {
    const Batch batch = data.get_epoch_batch({0}, epoch);
    const at::Tensor numbers = (batch["image"].select(1, 0) * 255).round().to(at::kLong);
    CHECK(batch["mask"].eq(-100).equal(numbers.eq(0)));
    CHECK(batch["mask"].equal(numbers.masked_fill(numbers.eq(0), -100)));
  }
}

TEST_CASE("a part and a turn show the same places of both") {
  const auto sides = [](int64_t y, int64_t x) { return (y < kSide / 2) != (x < 4) ? 100 : 200; };
  const Scene scene(png_bytes(grey(sides)), grey(sides));
  auto options = scene.options();
  options.crop = "random";
  options.min_area = 0.3;
  options.changes.rotation = 60;
  const ImageFolder data(options);
  double compared = 0;
  for (int64_t epoch = 0; epoch < 20; ++epoch) {
    const Batch batch = data.get_epoch_batch({0}, epoch);
    const at::Tensor greys = batch["image"].select(1, 0) * 255;
    for (const int64_t value : {100, 200}) {  // between them pixels are mixed
      const at::Tensor is_pure = (greys - value).abs().lt(0.01);
      CHECK(batch["mask"].masked_select(is_pure).eq(value).all().item<bool>());
      compared += is_pure.sum().item<double>();
    }
  }
  CHECK(compared > 20 * kSide * kSide / 4);
}

TEST_CASE("masks may have other names, and pictures without a mask have none for predictions") {
  const Scene scene("no mask");
  write_file(scene.dir / "masks/day/street_classes.png", png_bytes(grey(half)));
  auto options = scene.options();
  options.masks.files = "masks/*_classes.png";
  CHECK(ImageFolder(options).get(0)["mask"].equal(halves(1, 2)));
  options.masks.files = "nowhere";
  CHECK(contains(scene.error(options), "1 of 1 pictures have no mask"));
  CHECK(contains(scene.error(options), "nowhere/day/street.png"));
  options.labelled = false;
  CHECK(ImageFolder(options).get(0).find("mask") == nullptr);
}

TEST_CASE("a mask that does not fit is an error that names the file and the place") {
  const Scene scene(png_bytes(grey(half)));
  auto options = scene.options();
  options.masks.values = {0, 2};
  CHECK(contains(scene.error(options), "masks/day/street.png: row 0, pixel 0: no class has"));
  options.masks.ignored = {1};
  CHECK(scene.error(options).empty());
  options.masks.ignored = {2};
  CHECK(contains(scene.error(options), "given once"));
  options.masks.ignored = {};
  options.masks.classes = {"one"};
  CHECK(contains(scene.error(options), "one for each of 1 classes"));
  options = scene.options();
  options.classes = {"day"};
  CHECK(contains(scene.error(options), "masks.classes"));
}

TEST_CASE("validations need the classes of training, and predictions no masks") {
  const Scene scene(png_bytes(grey(half)));
  auto options = scene.options();
  options.masks.values = {1, 2};
  const StateDict fitted = ImageFolder(options).fitted();
  ImageFolder(options).take_fitted(fitted);
  options.masks.values = {2, 1};
  const auto error = [&](const StateDict& learnt) {
    return message_of([&] { ImageFolder(options).take_fitted(learnt); });
  };
  CHECK(contains(error(fitted), "training had masks.values = [1, 2]"));
  options.masks = {};
  const StateDict of_labels = ImageFolder(options).fitted();
  CHECK(contains(error(fitted), "training had masks, and this data has labels"));
  options.labelled = false;
  CHECK(error(fitted).empty());
  options = scene.options();
  CHECK(contains(error(of_labels), "training had labels, and this data has masks"));
}

TEST_CASE("a mask next to its picture is no picture, and wrong values are no damage") {
  const Scene scene(png_bytes(grey(half)));
  auto options = scene.options();
  options.root = "masks";
  CHECK(contains(scene.error(options), "is listed as a picture and is a mask"));
  options = scene.options();
  options.max_damaged = 5;
  options.masks.values = {7};
  CHECK(contains(scene.error(options), "no class has the value 1"));
  write_file(scene.dir / "masks/day/street.png", "no mask");
  CHECK(contains(scene.error(options), "this is not a PNG file"));
}

TEST_CASE("files that are no masks are refused") {
  const auto error = [](const std::string& file) {
    const Scene scene(file);
    return scene.error(scene.options());
  };
  CHECK(contains(error("GIF89a"), "street.png: offset 0: this is not a PNG file"));
  CHECK(contains(error(png_bytes(ramp(kSide, kSide, 3))), "has colours"));
  CHECK(contains(error(png_bytes(ramp(kSide, kSide + 1, 1))), "the mask has 12 x 13 pixels"));
  const std::string whole = png_bytes(grey(half));
  CHECK(contains(error(whole.substr(0, whole.size() - 20)), "street.png: offset"));
}

TEST_SUITE_END();
