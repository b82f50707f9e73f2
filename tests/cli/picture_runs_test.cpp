// Runs over folders of pictures, from TOML: the classes of training go along.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "cli/lines_of.h"
#include "cli/metric_of.h"
#include "cli/run_here.h"
#include "loggers/media_bytes.h"
#include "support/contains.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

namespace fs = std::filesystem;

TEST_SUITE_BEGIN("cli/picture_runs");

namespace {

/// Pictures of one colour each: of three classes to train, and of two of them to validate.
struct Animals {
  TempDir dir;

  Animals() {
    add("train/ant", 4, 0);
    add("train/cat", 4, 1);
    add("train/dog", 4, 2);
    add("val/cat", 3, 1);
    add("val/dog", 2, 2);
  }

  void add(const std::string& folder, int pictures, size_t colour) const {
    fs::create_directories(dir.path() / folder);
    Picture picture{2, 2, 3, std::vector<uint8_t>(12, 20)};
    for (size_t i = 0; i < 4; ++i) {
      picture.pixels[3 * i + colour] = 230;
    }
    for (int i = 0; i < pictures; ++i) {
      std::ofstream(dir.path() / folder / fmt::format("{}.png", i), std::ios::binary)
          << png_of(picture);
    }
  }

  std::string run_file() const {
    const std::string path = (dir / "run.toml").string();
    std::ofstream(path) << fmt::format(
        "[trainer.init]\n"
        "model_dir = \"{0}/run\"\n"
        "seed = 1\n"
        "model = {{ name = \"Mlp\", sizes = [12, 3] }}\n"
        "loop = {{ max_steps = 40, eval_frequency = 40 }}\n"
        "loggers = [{{ ProgressLogger = false }}]\n"
        "optimizer = {{ AdamW = {{ lr = 5e-2 }} }}\n"
        "[trainer.fit]\n"
        "train_dataloader = {{ dataset = \"ImageFolder\", root = \"{0}/train\", height = 2, "
        "width = 2, batch_size = 6, shuffle = true }}\n"
        "val_dataloader = {{ label = \"val\", dataset = \"ImageFolder\", root = \"{0}/val\", "
        "height = 2, width = 2, batch_size = 4 }}\n"
        "[trainer.validate]\n"
        "val_dataloader = \"val\"\n"
        "[trainer.predict]\n"
        "dataloader = \"val\"\n",
        dir.path().string());
    return path;
  }
};

}  // namespace

TEST_CASE("a class that validation lacks leaves the numbers of the others alone") {
  const Animals animals;
  const std::string file = animals.run_file();
  CHECK(metric_of(run_here({"fit", file, "--json"}), "val/accuracy") == 1.0);
  CHECK(metric_of(run_here({"validate", file, "--json"}), "val/accuracy") == 1.0);
}

TEST_CASE("predictions name the classes of training, also of pictures without a class") {
  const Animals animals;
  const std::string file = animals.run_file();
  REQUIRE(run_here({"fit", file}).code == 0);
  const auto predicted = [&](const std::string& keys) {
    const std::string loader = fmt::format(
        "trainer.predict.dataloader={{dataset = \"ImageFolder\", root = \"{}/val\", height = 2, "
        "width = 2, batch_size = 2{}}}",
        animals.dir.path().string(),
        keys);
    CHECK(run_here({"predict", file, loader}).code == 0);
    return lines_of(animals.dir / "run/logs/latest/predictions.csv");
  };
  const std::vector<std::string> lines = predicted("");
  REQUIRE(lines.size() == 6);
  CHECK(lines[0] == "id,prediction,p_ant,p_cat,p_dog");
  CHECK(contains(lines[1], "cat/0.png,cat,"));
  CHECK(contains(lines[5], "dog/1.png,dog,"));
  CHECK(predicted(", labelled = false") == lines);
}

TEST_CASE("a class that training lacks ends the run before its first update") {
  const Animals animals;
  animals.add("val/emu", 1, 0);
  const Answer fit = run_here({"fit", animals.run_file(), "--json"});
  CHECK(fit.code != 0);
  CHECK_FALSE(fs::exists(animals.dir / "run/checkpoint_40.pt"));
}

TEST_CASE("pictures with masks train a segmentation, and predictions need none") {
  const TempDir dir;
  fs::create_directories(dir / "photos");
  fs::create_directories(dir / "masks");
  for (int i = 0; i < 12; ++i) {  // a bright part on the left, of one colour for each class
    Picture picture{8, 8, 3, std::vector<uint8_t>(192, 20)};
    Picture mask{8, 8, 1, std::vector<uint8_t>(64, 0)};
    for (size_t pixel = 0; pixel < 64; ++pixel) {
      if (pixel % 8 < static_cast<size_t>(2 + i % 4)) {
        picture.pixels[3 * pixel + static_cast<size_t>(i % 2)] = 230;
        mask.pixels[pixel] = static_cast<uint8_t>(i % 2 == 0 ? 100 : 200);
      }
    }
    const std::string name = fmt::format("{}.png", i);
    std::ofstream(dir / "photos" / name, std::ios::binary) << png_of(picture);
    std::ofstream(dir / "masks" / name, std::ios::binary) << png_of(mask);
  }
  const std::string file = (dir / "run.toml").string();
  std::ofstream(file) << fmt::format(
      "[trainer.init]\n"
      "model_dir = \"{0}/run\"\n"
      "seed = 1\n"
      "model = {{ name = \"UNet\", channels = \"auto\", classes = \"auto\", width = 8, depth = 1 "
      "}}\n"
      "loop = {{ max_steps = 60, eval_frequency = 60 }}\n"
      "loggers = [{{ ProgressLogger = false }}]\n"
      "optimizer = {{ AdamW = {{ lr = 1e-2 }} }}\n"
      "[trainer.fit]\n"
      "train_dataloader = {{ dataset = \"ImageFolder\", root = \"{0}/photos\", height = 8, "
      "width = 8, flip = 0.5, masks = {{ files = \"{0}/masks\", values = [0, 100, 200] }}, "
      "batch_size = 4, shuffle = true }}\n"
      "val_dataloader = {{ label = \"val\", dataset = \"ImageFolder\", root = \"{0}/photos\", "
      "height = 8, width = 8, masks = {{ files = \"{0}/masks\", values = [0, 100, 200] }}, "
      "batch_size = 4 }}\n"
      "[trainer.predict]\n"
      "dataloader = {{ dataset = \"ImageFolder\", root = \"{0}/photos\", height = 8, width = 8, "
      "labelled = false, batch_size = 4 }}\n",
      dir.path().string());
  CHECK(metric_of(run_here({"fit", file, "--json"}), "val/iou") > 0.95);
  CHECK(run_here({"predict", file}).code == 0);
}

TEST_SUITE_END();
