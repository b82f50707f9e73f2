#include "data/images/image_folder.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/registry.h"
#include "core/state_dict.h"
#include "data/data_files.h"
#include "data/data_loader.h"
#include "data/derived/combined.h"
#include "data/image_files.h"
#include "data/register.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// Two cats and a dog, of one colour each but for a ramp.
struct Pets {
  TempDir dir;

  Pets() {
    std::filesystem::create_directories(dir / "pets/cat/small");
    std::filesystem::create_directories(dir / "pets/dog");
    write_file(dir / "pets/cat/b.JPG", jpeg_bytes(plain(200)));
    write_file(dir / "pets/cat/small/a.png", png_bytes(ramp(40, 60, 3)));
    write_file(dir / "pets/dog/c.png", png_bytes(plain(51)));
    write_file(dir / "pets/dog/notes.txt", "no picture");
  }

  static Image plain(uint8_t value) {
    return {30, 20, 3, false, std::vector<uint8_t>(30 * 20 * 3, value)};
  }

  ImageFolder::Options options() const {
    ImageFolder::Options made;
    made.root = "pets";
    made.data_dir = dir.path();
    made.height = 8;
    made.width = 8;
    return made;
  }
};

}  // namespace

TEST_SUITE_BEGIN("data/image_folder");

TEST_CASE("pictures have the number of their folder, in the order of the names") {
  const Pets pets;
  const ImageFolder data(pets.options());
  CHECK(data.classes() == std::vector<std::string>{"cat", "dog"});
  CHECK(data.size() == 3);
  CHECK(data.facts().class_names == data.classes());
  CHECK(data.facts().class_weights == std::vector<double>{0.75, 1.5});
  CHECK(data.facts().image_shape == std::vector<int64_t>{3, 8, 8});
  const Batch batch = data.get_batch({0, 2});
  CHECK(batch["image"].sizes() == at::IntArrayRef({2, 3, 8, 8}));
  CHECK(equal_bytes(batch["label"], torch::tensor({0, 1}, torch::kLong)));
  CHECK(at::allclose(batch["image"][0], torch::full({3, 8, 8}, 200 / 255.0), 0.01, 0.01));
  CHECK(at::allclose(batch["image"][1], torch::full({3, 8, 8}, 0.2)));
}

TEST_CASE("classes may be chosen and ordered, values normalised, pictures made grey") {
  const Pets pets;
  auto options = pets.options();
  options.classes = {"dog", "cat"};
  options.channels = 1;
  options.mean = {0.1};
  options.std = {0.5};
  const ImageFolder data(options);
  const Sample dog = data.get(0);
  CHECK(dog["label"].item<int64_t>() == 0);
  CHECK(at::allclose(dog["image"], torch::full({1, 8, 8}, 0.2), 1e-4, 1e-4));
}

TEST_CASE("classes have the numbers of training, and one that training lacks is named") {
  const Pets pets;
  const Pets others;
  write_file(others.dir / "pets/ant/d.png", png_bytes(Pets::plain(10)));
  const ImageFolder train(others.options());
  REQUIRE(train.classes() == std::vector<std::string>{"ant", "cat", "dog"});
  ImageFolder val(pets.options());
  val.take_fitted(train.fitted());
  CHECK(val.classes() == train.classes());
  CHECK(val.facts().classes == 3);
  CHECK(val.facts().class_weights == std::vector<double>{0, 0.5, 1});
  CHECK(equal_bytes(val.get_batch({0, 1, 2})["label"], torch::tensor({1, 1, 2}, torch::kLong)));
  CHECK(val.numbers("label") == std::vector<double>{1, 1, 2});
  CHECK(first_difference(val.fitted(), train.fitted()).empty());

  const StateDict fewer = ImageFolder(pets.options()).fitted();
  ImageFolder more(others.options());
  const std::string message = message_of([&] { more.take_fitted(fewer); });
  CHECK(contains(message, "class \"ant\""));
  CHECK(contains(message, "cat, dog"));
  CHECK(equal_bytes(more.get(0)["label"], torch::tensor(0, torch::kLong)));
  val.take_fitted(fewer);  // ant has no file here
  CHECK(val.numbers("label") == std::vector<double>{0, 0, 1});
  CHECK_THROWS_AS(val.take_fitted({{"type", "CsvTable"}}), CheckpointError);
}

TEST_CASE("pictures without a class are those of a folder and its folders, for predictions") {
  const Pets pets;
  auto options = pets.options();
  options.labelled = false;
  ImageFolder data(options);
  CHECK(data.size() == 3);
  CHECK(data.sample_name(2) == "dog/c.png");
  CHECK(data.get(0).find("label") == nullptr);
  CHECK_FALSE(data.facts().classes);
  CHECK(data.fitted().empty());
  CHECK_THROWS_AS(data.numbers("label"), DataError);
  data.take_fitted({{"type", "ImageFolder"}, {"classes", StateList{"ant", "cat"}}});
  CHECK(data.facts().class_names == std::vector<std::string>{"ant", "cat"});
  options.classes = {"cat"};
  CHECK_THROWS_AS(ImageFolder{options}, UsageError);
  options.root = "pets/dog";
  options.classes.clear();
  CHECK(ImageFolder(options).size() == 1);
  options.labelled = true;
  CHECK(contains(message_of([&] { ImageFolder{options}; }), "labelled = false"));
}

TEST_CASE("a table gives pictures their class instead of folders") {
  const Pets pets;
  write_file(pets.dir / "pets/labels.csv",
             "\xEF\xBB\xBF"
             "file,label,id\ndog/c.png,small,1\n\"cat/b.JPG\",large,2\ncat/small/a.png,small,3\n");
  auto options = pets.options();
  options.labels_file = "labels.csv";
  const ImageFolder data(options);
  CHECK(data.classes() == std::vector<std::string>{"large", "small"});
  CHECK(data.numbers("label") == std::vector<double>{1, 0, 1});
  CHECK(data.sample_name(0) == "dog/c.png");
  options.classes = {"small"};
  CHECK(ImageFolder(options).size() == 2);
  const auto error = [&](const char* table) {
    write_file(pets.dir / "pets/labels.csv", table);
    return message_of([&] { ImageFolder{options}; });
  };
  CHECK(contains(error("file,class\n"), "no column \"label\""));
  CHECK(contains(error("file,label\ncat/x.png,small\n"), "row 1: there is no file"));
  CHECK(contains(error("file,label\ndog/c.png\n"), "row 1 has 1 fields"));
  CHECK(contains(error("file,label\ndog/c.png,large\n"), "class \"small\" has no row"));
}

TEST_CASE("a split takes each picture once, with all classes in every part") {
  const Pets pets;
  for (int i = 0; i < 9; ++i) {
    for (const char* pet : {"cat", "dog"}) {
      write_file(pets.dir.path() / "pets" / pet / (std::to_string(i) + ".png"),
                 png_bytes(Pets::plain(100)));
    }
  }
  auto options = pets.options();
  options.split.val = 0.25;
  options.split.by = "stratified";
  std::set<std::string> names;
  for (const char* part : {"train", "val"}) {
    options.split.part = part;
    const ImageFolder data(options);
    CHECK(data.facts().classes == 2);
    CHECK(data.size() == (options.split.part == "val" ? 5 : 16));
    for (int64_t i = 0; i < data.size(); ++i) {
      CHECK(names.insert(data.sample_name(i)).second);
    }
  }
  CHECK(names.size() == 21);
  options.split.by = "time:label";
  CHECK_THROWS_AS(ImageFolder{options}, UsageError);
}

TEST_CASE("parts of several folders have the classes of the first") {
  const Pets pets;
  const Pets others;
  std::filesystem::remove_all(others.dir / "pets/cat");
  const Concat both({{use<ImageFolder>(pets.options()), use<ImageFolder>(others.options())}});
  CHECK(both.numbers("label") == std::vector<double>{0, 0, 1, 1});
  CHECK(both.fitted().at("classes").as_list().size() == 2);
}

TEST_CASE("chance changes samples from epoch to epoch, and follows from seed, epoch and number") {
  const Pets pets;
  auto options = pets.options();
  options.crop = "random";
  options.flip = 0.5;
  const ImageFolder data(options);
  const ImageFolder again(options);
  const auto image = [](const ImageFolder& from, int64_t epoch) {
    return from.get_epoch_batch({1}, epoch)["image"];
  };
  for (const int64_t epoch : {0, 1, 2}) {
    CHECK(equal_bytes(image(data, epoch), image(again, epoch)));
    CHECK_FALSE(at::equal(image(data, epoch), image(data, epoch + 1)));
  }
  options.augment_seed = 1;
  CHECK_FALSE(at::equal(image(ImageFolder(options), 0), image(data, 0)));
}

TEST_CASE("the part that was taken is turned, moved and lit by chance, and then normalised") {
  const Pets pets;
  auto options = pets.options();
  options.changes.brightness = 0.5;
  options.mean = {0.5, 0.5, 0.5};
  const ImageFolder data(options);
  const at::Tensor first = data.get_epoch_batch({2}, 0)["image"];
  CHECK_FALSE(at::equal(first, data.get_epoch_batch({2}, 1)["image"]));
  CHECK(equal_bytes(first, ImageFolder(options).get_epoch_batch({2}, 0)["image"]));
  const double light = first.mean().item<double>() + 0.5;  // 0.2 times 0.5 to 1.5
  CHECK(light >= 0.099);
  CHECK(light <= 0.301);
  options.changes.hue = 0.6;
  CHECK_THROWS_AS(ImageFolder{options}, UsageError);
}

TEST_CASE("a config asks for the mean and deviation of ImageNet by name") {
  const Pets pets;
  Registry<DataSource> registry("dataset");
  register_image_folder(registry);
  ConfigTable keys;
  keys.set("root", ConfigValue((pets.dir / "pets").string()));
  keys.set("mean", ConfigValue(std::string("imagenet")));
  keys.set("std", ConfigValue(std::string("imagenet")));
  std::vector<Fault> faults;
  FaultSink sink("", faults);
  const auto factory = registry.read_named("ImageFolder", {}, keys, sink);
  REQUIRE(faults.empty());
  const auto data = factory.make();
  const at::Tensor dog = dynamic_cast<const ImageFolder&>(*data).get(2)["image"];
  CHECK(at::allclose(dog.select(0, 2), torch::full({224, 224}, (0.2 - 0.406) / 0.225), 1e-3, 1e-3));
  keys.set("mean", ConfigValue(std::string("cifar")));
  registry.read_named("ImageFolder", {}, keys, sink);
  CHECK(faults.size() == 1);
}

TEST_CASE("a loader asks for the samples of its epoch") {
  const Pets pets;
  auto options = pets.options();
  options.crop = "random";
  LoaderOptions loader;
  loader.batch_size = 3;
  const DataLoader data("train", use<ImageFolder>(options), loader);
  const auto image = [&](int64_t epoch) { return (*data.stream({epoch, 0}, 1)->next())["image"]; };
  CHECK(equal_bytes(image(1), ImageFolder(options).get_epoch_batch({0, 1, 2}, 1)["image"]));
  CHECK_FALSE(at::equal(image(0), image(1)));
}

TEST_CASE("what is missing or damaged is an error that names it") {
  const Pets pets;
  const auto error = [](const ImageFolder::Options& options) {
    return message_of([&] {
      const ImageFolder data(options);
      data.get_batch({0, 1, 2});
    });
  };
  auto options = pets.options();
  options.root = "animals";
  CHECK(contains(error(options), "animals"));
  options = pets.options();
  options.classes = {"cat", "cow"};
  CHECK(contains(error(options), "class \"cow\" has no .jpg"));
  options = pets.options();
  options.std = {1, 0, 1};
  CHECK(contains(error(options), "ImageFolder: std"));
  write_file(pets.dir / "pets/dog/c.png", png_bytes(ramp(9, 9, 3)).substr(0, 60));
  CHECK(contains(error(pets.options()), "pets/dog/c.png: offset"));
}

TEST_CASE("damaged files give the next whole picture, up to a limit, and are counted") {
  const Pets pets;
  auto options = pets.options();
  write_file(pets.dir / "pets/dog/0.png", "no picture");
  options.max_damaged = 1;
  const ImageFolder data(options);
  const int64_t added = data.size() == 4 ? 1 : 0;  // the first dog's name sorts before the others'
  REQUIRE(added == 1);
  int64_t damaged = -1;
  for (int64_t i = 0; i < data.size(); ++i) {
    const Sample got = data.get(i);
    const Sample next = data.get((i + 1) % data.size());
    if (equal_bytes(got["image"], next["image"])) {
      damaged = i;
    }
  }
  CHECK(damaged >= 0);
  CHECK(data.counts().front().second == 1);
  write_file(pets.dir / "pets/dog/00.png", "no picture either");
  const ImageFolder worse(options);
  const std::string message = message_of([&] { worse.get_batch({0, 1, 2, 3, 4}); });
  CHECK(contains(message, "2 files are damaged"));
  CHECK(contains(message, "offset 0"));
}

TEST_SUITE_END();
