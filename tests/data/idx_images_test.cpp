#include "data/images/idx_images.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <fstream>

#include "core/error.h"
#include "core/state_dict.h"
#include "data/data_files.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

namespace {

const std::string kPixels = "abcdefghijkl";  // three images of 2 x 2

/// MNIST's test files with three small images, plain or gzipped, changed before they are written.
struct SmallMnist {
  TempDir dir;
  std::string images = idx_bytes({3, 2, 2}, kPixels);
  std::string labels = idx_bytes({3}, std::string("\x02\x00\x09", 3));

  IdxImages::Options options() const {
    IdxImages::Options made{"test"};
    made.data_dir = dir.path();
    return made;
  }

  void write() const {
    write_file(dir / "t10k-images-idx3-ubyte", images);
    write_file(dir / "t10k-labels-idx1-ubyte", labels);
  }

  /// The message of the DataError of reading it.
  std::string error() const {
    write();
    CHECK_THROWS_AS(IdxImages{options()}, DataError);
    return message_of([this] { IdxImages{options()}; });
  }
};

}  // namespace

TEST_SUITE_BEGIN("data/idx_images");

TEST_CASE("images are scaled to [0, 1], labels are integers") {
  SmallMnist mnist;
  mnist.write();
  const IdxImages data(mnist.options());
  CHECK(data.size() == 3);
  const Sample sample = data.get(1);
  CHECK(sample["image"].sizes() == at::IntArrayRef({1, 2, 2}));
  CHECK(sample["image"][0][0][0].item<float>() == static_cast<float>('e' / 255.0));
  CHECK(equal_bytes(data.get_batch({2, 0})["label"], torch::tensor({9, 2}, at::kLong)));
  CHECK(data.facts().classes == 10);
  CHECK(data.facts().image_shape == std::vector<int64_t>{1, 2, 2});
}

TEST_CASE("EMNIST's pictures stand upright, and its letters have numbers from 0") {
  const TempDir dir;
  // Of two rows and three columns, stored by columns.
  write_file(dir / "emnist-letters-train-images-idx3-ubyte", idx_bytes({2, 3, 2}, "adbecfADBECF"));
  write_file(dir / "emnist-letters-train-labels-idx1-ubyte", idx_bytes({2}, "\x01\x1a"));
  IdxImages::Options options;
  options.data_dir = dir.path();
  options.layout = "emnist_letters";
  const IdxImages data(options);
  CHECK(data.facts().classes == 26);
  CHECK(data.facts().class_names.back() == "Z");
  CHECK(data.facts().image_shape == std::vector<int64_t>{1, 2, 3});
  const Batch batch = data.get_batch({0, 1});
  CHECK(equal_bytes(batch["label"], torch::tensor({0, 25}, at::kLong)));
  const at::Tensor letters = batch["image"][0].mul(255).round().to(at::kByte).flatten();
  CHECK(equal_bytes(letters, torch::tensor({97, 98, 99, 100, 101, 102}, at::kByte)));

  write_file(dir / "emnist-letters-train-labels-idx1-ubyte",
             idx_bytes({2}, std::string("\x00\x1a", 2)));
  CHECK(contains(message_of([&] { IdxImages{options}; }), "from 1 on and below 27, got 0"));
  options.layout = "emnist_kanji";
  CHECK_THROWS_AS(IdxImages{options}, UsageError);
}

TEST_CASE("gzipped files are read alike, also when the name is given with or without .gz") {
  SmallMnist mnist;
  mnist.write();
  const TempDir zipped;
  write_gzip(zipped / "mnist" / "t10k-images-idx3-ubyte.gz", mnist.images);
  write_gzip(zipped / "mnist" / "labels.gz", mnist.labels);
  auto options = mnist.options();
  const at::Tensor expected = IdxImages(options).get_batch({0, 1, 2})["image"];
  options.data_dir = zipped.path();
  for (const char* labels : {"labels", "labels.gz"}) {
    options.labels = labels;
    CHECK(equal_bytes(IdxImages(options).get_batch({0, 1, 2})["image"], expected));
  }
}

TEST_CASE("a range of the images is taken; one that is not there is refused") {
  SmallMnist mnist;
  mnist.write();
  auto options = mnist.options();
  options.first = 1;
  CHECK(IdxImages(options).size() == 2);
  options.count = 1;
  CHECK(IdxImages(options).get_batch({0})["label"].item<int64_t>() == 0);
  for (const auto& [first, count] : {std::pair(1, 3), std::pair(3, 1), std::pair(-1, 1)}) {
    options.first = first;
    options.count = count;
    CHECK_THROWS_AS(IdxImages{options}, UsageError);
  }
}

TEST_CASE("damaged files are errors that name file and offset") {
  SmallMnist mnist;
  std::vector<std::string> facts = {"t10k-images-idx3-ubyte"};
  SUBCASE("wrong magic number") {
    mnist.images[3] = '\x01';
    facts.insert(facts.end(), {"offset 0", "0x00000803", "0x00000801"});
  }
  SUBCASE("header cut off") {
    mnist.images.resize(9);
    facts.insert(facts.end(), {"offset 9", "16"});
  }
  SUBCASE("pixels cut off") {
    mnist.images.pop_back();
    facts.insert(facts.end(), {"offset 16", "12", "11"});
  }
  SUBCASE("bytes too many") {
    mnist.images += "m";
    facts.insert(facts.end(), {"offset 16", "12", "13"});
  }
  SUBCASE("a size beyond all memory") {
    mnist.images.replace(4, 12, 12, '\xff');
    facts.emplace_back("offset 16");
  }
  SUBCASE("as many labels as images") {
    mnist.labels = idx_bytes({2}, std::string("\x02\x00", 2));
    facts.insert(facts.end(), {"3 images", "2 labels", "t10k-labels-idx1-ubyte"});
  }
  SUBCASE("label out of range") {
    mnist.labels.back() = '\x0a';
    facts = {"t10k-labels-idx1-ubyte", "offset 10", "below 10"};
  }
  SUBCASE("empty file") {
    mnist.labels.clear();
    facts = {"t10k-labels-idx1-ubyte", "offset 0"};
  }
  const std::string message = mnist.error();
  for (const std::string& fact : facts) {
    CAPTURE(message);
    CHECK(contains(message, fact));
  }
}

TEST_CASE("a gzip stream that ends early or is damaged is an error that names the file") {
  SmallMnist mnist;
  mnist.images = idx_bytes({1000, 2, 2}, std::string(4000, 'x'));
  for (size_t i = 16; i < mnist.images.size(); ++i) {
    mnist.images[i] = static_cast<char>(i * i >> 3);
  }
  mnist.write();
  const auto whole = mnist.dir / "t10k-images-idx3-ubyte";
  const auto zipped = mnist.dir / "t10k-images-idx3-ubyte.gz";
  write_gzip(zipped, mnist.images);
  std::filesystem::remove(whole);
  const auto size = std::filesystem::file_size(zipped);
  SUBCASE("ends early") {
    std::filesystem::resize_file(zipped, size / 2);
  }
  SUBCASE("damaged") {
    std::fstream file(zipped, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<int64_t>(size) - 6);  // its checksum
    file << "xx";
  }
  CHECK_THROWS_AS(IdxImages{mnist.options()}, DataError);
  CHECK(contains(message_of([&] { IdxImages{mnist.options()}; }), zipped.string()));
}

TEST_CASE("missing files say which, where, and where they come from") {
  const ScopedEnvironment none("RONDO_DATA", nullptr);
  const TempDir dir;
  IdxImages::Options options;
  options.data_dir = dir.path();
  const std::string message = message_of([&] { IdxImages{options}; });
  for (const std::string& fact : {std::string("train-images-idx3-ubyte.gz"),
                                  (dir / "mnist" / "train-images-idx3-ubyte").string(),
                                  std::string("MNIST database")}) {
    CHECK(contains(message, fact));
  }
}

TEST_CASE("options out of range are refused") {
  IdxImages::Options options;
  options.split = "val";
  CHECK_THROWS_AS(IdxImages{options}, UsageError);
  options = {};
  options.std = 0.0;
  CHECK_THROWS_AS(IdxImages{options}, UsageError);
  options = {};
  options.classes = 257;
  CHECK_THROWS_AS(IdxImages{options}, UsageError);
}

TEST_CASE("the real MNIST test files are read") {
  const auto folder = public_data("mnist");
  if (!folder) {
    MESSAGE("skipped: no MNIST files");
    return;
  }
  IdxImages::Options options{"test"};
  options.data_dir = folder->parent_path();
  const IdxImages all(options);
  CHECK(all.size() == 10000);
  CHECK(all.get(0)["image"].sizes() == at::IntArrayRef({1, 28, 28}));
  CHECK(all.get(0)["label"].item<int64_t>() == 7);  // the test files begin 7, 2, 1
  CHECK(all.get(1)["label"].item<int64_t>() == 2);
  options.first = 8000;
  const IdxImages last(options);
  CHECK(last.size() == 2000);
  CHECK(equal_bytes(last.get(5)["image"], all.get(8005)["image"]));
}

TEST_SUITE_END();
