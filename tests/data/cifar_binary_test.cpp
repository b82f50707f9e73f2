#include "data/images/cifar_binary.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include "core/error.h"
#include "core/state_dict.h"
#include "data/data_files.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

namespace {

std::string record(char label, char red, char green, char blue) {
  return label + std::string(1024, red) + std::string(1024, green) + std::string(1024, blue);
}

CifarBinary::Options in(const TempDir& dir) {
  CifarBinary::Options options;
  options.data_dir = dir.path();
  return options;
}

}  // namespace

TEST_SUITE_BEGIN("data/cifar_binary");

TEST_CASE("records are planes of red, green and blue, file after file") {
  const TempDir dir;
  for (const char number : {'1', '2', '3', '4', '5'}) {
    write_file(dir / "cifar-10-batches-bin" / (std::string("data_batch_") + number + ".bin"),
               record(static_cast<char>(number - '0'), '\x00', '\x33', '\xff'));
  }
  const CifarBinary data(in(dir));
  CHECK(data.size() == 5);
  const Batch batch = data.get_batch({4, 0});
  CHECK(batch["image"].sizes() == at::IntArrayRef({2, 3, 32, 32}));
  CHECK(equal_bytes(batch["label"], torch::tensor({5, 1}, at::kLong)));
  CHECK(equal_bytes(data.get(0)["image"].select(1, 31).select(1, 31).contiguous(),
                    torch::tensor({0.0F, 0.2F, 1.0F})));
  CHECK(data.facts().classes == 10);
  CHECK(data.facts().image_shape == std::vector<int64_t>{3, 32, 32});
}

TEST_CASE("CIFAR-100 has a coarse and a fine label before the pixels") {
  const TempDir dir;
  write_file(dir / "cifar-100-binary/train.bin", "\x13" + record('\x63', '\x00', '\x33', '\xff'));
  auto options = in(dir);
  options.layout = "cifar100";
  const CifarBinary fine(options);
  CHECK(fine.get(0)["label"].item<int64_t>() == 99);
  CHECK(fine.get(0)["image"][2][31][31].item<float>() == 1.0F);
  CHECK(fine.facts().classes == 100);
  options.layout = "cifar100_coarse";
  CHECK(CifarBinary(options).get(0)["label"].item<int64_t>() == 19);
  write_file(dir / "cifar-100-binary/train.bin", "\x14" + record('\x63', '\x00', '\x33', '\xff'));
  CHECK(contains(message_of([&] { CifarBinary{options}; }), "offset 0: expected a label below 20"));
  options.layout = "cifar1000";
  CHECK_THROWS_AS(CifarBinary{options}, UsageError);
}

TEST_CASE("the test split, other files and the channels' mean and std can be chosen") {
  const TempDir dir;
  write_gzip(dir / "test_batch.bin", record('\x03', '\x00', '\x33', '\xff'));
  auto options = in(dir);
  options.split = "test";
  options.mean = {0.0, 0.2, 0.5};
  options.std = {1.0, 1.0, 0.5};
  CHECK(CifarBinary(options).get(0)["image"][2][0][0].item<float>() == 1.0F);
  options.split = "train";
  options.files = {"test_batch.bin", "test_batch.bin"};
  CHECK(CifarBinary(options).size() == 2);
}

TEST_CASE("damaged files are errors that name file and offset") {
  const TempDir dir;
  auto options = in(dir);
  options.files = {"b.bin"};
  std::vector<std::string> facts = {(dir / "b.bin").string()};
  std::string bytes = record('\x01', 'r', 'g', 'b') + record('\x02', 'r', 'g', 'b');
  SUBCASE("cut off") {
    bytes.pop_back();
    facts.insert(facts.end(), {"offset 3073", "3072"});
  }
  SUBCASE("label out of range") {
    bytes[3073] = '\x0a';
    facts.insert(facts.end(), {"offset 3073", "10"});
  }
  SUBCASE("empty") {
    bytes.clear();
    facts.emplace_back("offset 0");
  }
  write_file(dir / "b.bin", bytes);
  CHECK_THROWS_AS(CifarBinary{options}, DataError);
  for (const std::string& fact : facts) {
    CHECK(contains(message_of([&] { CifarBinary{options}; }), fact));
  }
}

TEST_CASE("missing files and options out of range are refused") {
  const TempDir dir;
  auto options = in(dir);
  CHECK(contains(message_of([&] { CifarBinary{options}; }), "data_batch_1.bin"));
  options.std = {1.0, 0.0, 1.0};
  CHECK_THROWS_AS(CifarBinary{options}, UsageError);
  options = in(dir);
  options.mean = {0.5};
  CHECK_THROWS_AS(CifarBinary{options}, UsageError);
  options = in(dir);
  options.split = "val";
  CHECK_THROWS_AS(CifarBinary{options}, UsageError);
}

TEST_SUITE_END();
