#include "data/images/picture_cache.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/state_dict.h"
#include "data/data_files.h"
#include "data/image_files.h"
#include "data/images/image_folder.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

namespace {

namespace fs = std::filesystem;

/// Eight pictures of a class, and a folder for the cache.
struct Photos {
  TempDir dir;

  Photos() {
    fs::create_directories(dir / "photos/a");
    for (int i = 0; i < 8; ++i) {
      write_file(path(i), png_bytes(ramp(40 + i, 60, 3)));
    }
  }

  fs::path path(int number) const {
    return dir.path() / "photos/a" / (std::to_string(number) + ".png");
  }

  ImageFolder::Options options() const {
    ImageFolder::Options made;
    made.root = "photos";
    made.data_dir = dir.path();
    made.height = 8;
    made.width = 8;
    made.crop = "random";
    made.flip = 0.5;
    return made;
  }

  ImageFolder::Options cached(int64_t side = 0) const {
    ImageFolder::Options made = options();
    made.cache = {(dir / "cache").string(), side};
    return made;
  }

  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(dir / "cache")) {
      found.push_back(entry.path());
    }
    return found;
  }
};

const std::vector<int64_t> kAll{0, 1, 2, 3, 4, 5, 6, 7};

at::Tensor images(const ImageFolder& data, int64_t epoch) {
  return data.get_epoch_batch(kAll, epoch)["image"];
}

}  // namespace

TEST_SUITE_BEGIN("data/picture_cache");

TEST_CASE("samples have the same bytes with a cache, in every epoch and after a new start") {
  const Photos photos;
  const ImageFolder plain(photos.options());
  const ImageFolder first(photos.cached());
  for (const int64_t epoch : {0, 1, 2}) {
    CHECK(equal_bytes(images(first, epoch), images(plain, epoch)));
  }
  CHECK(photos.files().size() == 1);
  const auto size = fs::file_size(photos.files()[0]);
  const ImageFolder second(photos.cached());
  CHECK(equal_bytes(images(second, 3), images(plain, 3)));
  CHECK(photos.files().size() == 1);
  CHECK(fs::file_size(photos.files()[0]) == size);
}

TEST_CASE("larger pictures can be kept smaller, and samples are nearly the same") {
  const Photos photos;
  const at::Tensor plain = images(ImageFolder(photos.options()), 0);
  const ImageFolder data(photos.cached(20));
  const at::Tensor kept = images(data, 0);
  CHECK_FALSE(at::equal(kept, plain));
  CHECK((kept - plain).abs().max().item<double>() < 0.05);
  CHECK(equal_bytes(images(ImageFolder(photos.cached(20)), 0), kept));
  CHECK(fs::file_size(photos.files()[0]) < 8 * (20 * 31 * 3 + 100));
}

TEST_CASE("a picture that changed is decoded again") {
  const Photos photos;
  images(ImageFolder(photos.cached()), 0);
  write_file(photos.path(3), png_bytes(ramp(70, 30, 3)));
  CHECK(equal_bytes(images(ImageFolder(photos.cached()), 0),
                    images(ImageFolder(photos.options()), 0)));
}

TEST_CASE("a damaged, truncated or foreign file of the cache costs a decoding and nothing else") {
  const Photos photos;
  const at::Tensor plain = images(ImageFolder(photos.options()), 0);
  images(ImageFolder(photos.cached()), 0);
  const fs::path file = photos.files()[0];
  std::string bytes;
  {
    std::ifstream stream(file, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(stream), {});
  }
  const auto check_with = [&](const std::string& content) {
    for (const fs::path& other : photos.files()) {
      fs::remove(other);
    }
    write_file(file, content);
    CHECK(equal_bytes(images(ImageFolder(photos.cached()), 0), plain));
  };
  for (const size_t at :
       {size_t{3}, size_t{16}, size_t{20}, size_t{50}, size_t{500}, bytes.size() - 5}) {
    CAPTURE(at);
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x01);
    check_with(damaged);
    check_with(bytes.substr(0, at));
  }
}

TEST_CASE("pictures of 16 bits are kept as such") {
  const Photos photos;
  Image wide{40, 30, 1, true, {}};
  for (int i = 0; i < 40 * 30; ++i) {
    wide.bytes.push_back(static_cast<uint8_t>(i * 7));
    wide.bytes.push_back(static_cast<uint8_t>(i / 5));
  }
  write_file(photos.path(3), png_bytes(wide));
  for (const int64_t side : {0, 20}) {
    auto options = photos.cached(side);
    options.channels = 1;
    const at::Tensor first = images(ImageFolder(options), 0);
    CHECK(equal_bytes(images(ImageFolder(options), 0), first));
    options.cache = {};
    CHECK((images(ImageFolder(options), 0) - first).abs().max().item<double>() < 0.1);
  }
}

TEST_CASE("threads share a cache") {
  const Photos photos;
  const ImageFolder data(photos.cached());
  std::vector<at::Tensor> found(4);
  std::vector<std::thread> threads;
  for (at::Tensor& one : found) {
    threads.emplace_back([&] { one = images(data, 0); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const at::Tensor& one : found) {
    CHECK(equal_bytes(one, images(ImageFolder(photos.options()), 0)));
  }
}

TEST_CASE("a folder that cannot be is an error") {
  const Photos photos;
  auto options = photos.options();
  write_file(photos.dir / "file", "no folder");
  options.cache.folder = (photos.dir / "file/cache").string();
  CHECK_THROWS_AS(ImageFolder{options}, IoError);
  options.cache = {(photos.dir / "cache").string(), -1};
  CHECK_THROWS_AS(ImageFolder{options}, UsageError);
  options.cache = {(photos.dir / "photos/cache").string(), 0};
  CHECK_THROWS_AS(ImageFolder{options}, UsageError);
}

TEST_SUITE_END();
