#include <doctest/doctest.h>
#include <torch/types.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "checkpoint/archives.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

TEST_SUITE_BEGIN("checkpoint/checkpoint_damage");

namespace {

std::string sample_file(const TempDir& dir) {
  write_checkpoint(*real_file_system(), dir / "sample.pt", sample_state());
  return bytes_of(dir / "sample.pt");
}

}  // namespace

TEST_CASE("a flipped bit is found, wherever in the file it is") {
  const TempDir dir;
  const std::string bytes = sample_file(dir);
  std::fstream file(dir / "sample.pt", std::ios::in | std::ios::out | std::ios::binary);
  const auto overwrite = [&file](size_t at, char byte) {
    file.seekp(static_cast<std::streamoff>(at)).put(byte).flush();
  };
  size_t missed = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      overwrite(i, static_cast<char>(bytes[i] ^ (1 << bit)));
      missed += is_refused(dir / "sample.pt") ? 0 : 1;
    }
    overwrite(i, bytes[i]);
  }
  CHECK(missed == 0);
  CHECK(read_error(dir / "sample.pt") == "");
}

TEST_CASE("a file that was cut short, or that has bytes too many, is found") {
  const TempDir dir;
  const std::string bytes = sample_file(dir);
  size_t missed = 0;
  for (size_t size = bytes.size(); size-- > 0;) {
    std::filesystem::resize_file(dir / "sample.pt", size);
    missed += is_refused(dir / "sample.pt") ? 0 : 1;
  }
  for (const std::string& more : {std::string(1, '\0'), std::string(1, 'x'), bytes}) {
    write_bytes(dir / "x.pt", bytes + more);
    missed += is_refused(dir / "x.pt") ? 0 : 1;
    write_bytes(dir / "x.pt", more + bytes);
    missed += is_refused(dir / "x.pt") ? 0 : 1;
  }
  CHECK(missed == 0);
}

TEST_CASE("damage is reported with the record and the offset") {
  const TempDir dir;
  std::string bytes = sample_file(dir);
  const std::string third_eighth("\x00\x00\x40\x40\x00\x00\x80\x40", 8);  // 3.0f, 4.0f
  const size_t at = bytes.find(third_eighth);
  REQUIRE(at != std::string::npos);
  bytes[at + 2] ^= 1;
  write_bytes(dir / "x.pt", bytes);
  const std::string error = read_error(dir / "x.pt");
  CHECK(contains(error, "archive/data/0"));
  CHECK(contains(error, "byte " + std::to_string(at - 3 * sizeof(float))));
}

TEST_CASE("of a damaged file of Python's every record is checked") {
  const TempDir dir;
  const std::string bytes = bytes_of(python_file("python_state_dict.pt"));
  std::string damaged = bytes;
  const size_t at = bytes.find(std::string("\x00\x00\x00\x3e", 4));  // 0.125f in data/0
  REQUIRE(at != std::string::npos);
  damaged[at] ^= 1;
  write_bytes(dir / "x.pt", damaged);
  CHECK(contains(read_error(dir / "x.pt"), "data/0"));
}

TEST_SUITE_END();
