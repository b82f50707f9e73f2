#include <doctest/doctest.h>
#include <torch/torch.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
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

/// Bytes with one to four random changes: bits, bytes, runs that are taken out, doubled or
/// overwritten.
std::string mutated(std::string bytes, std::mt19937& random) {
  const auto below = [&random](size_t limit) { return random() % std::max<size_t>(limit, 1); };
  for (size_t change = 1 + below(4); change > 0 && !bytes.empty(); --change) {
    const size_t at = below(bytes.size());
    const size_t run = 1 + below(std::min<size_t>(bytes.size() - at, 40));
    switch (below(6)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        bytes[at] = static_cast<char>(below(256));
        break;
      case 2:
        bytes.erase(at, run);
        break;
      case 3:
        bytes.insert(at, bytes.substr(below(bytes.size()), run));
        break;
      case 4:
        bytes.replace(at, run, run, static_cast<char>(below(2) * 0xFF));
        break;
      default:
        bytes.resize(at);
        break;
    }
  }
  return bytes;
}

/// Reads the file; when it reads, walks over every value as a user would.
/// \return true when it was refused with a CheckpointError. Anything else passes.
bool is_refused(const std::filesystem::path& path) {
  try {
    const StateDict state = read_checkpoint(path);
    first_difference(state, state);
    return false;
  } catch (const CheckpointError& error) {
    CHECK(contains(error.what(), path.filename().string()));
    return true;
  }
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

TEST_CASE("of mutated files only CheckpointErrors come out") {
  const TempDir dir;
  std::mt19937 random(20240501);
  const std::string corpus[] = {sample_file(dir),
                                bytes_of(python_file("python_state_dict.pt")),
                                bytes_of(python_file("python_values.pt"))};
  for (int i = 0; i < 250 * campaign_scale(); ++i) {
    CAPTURE(i);
    const std::string& original = corpus[i % std::size(corpus)];
    const std::string bytes = mutated(original, random);
    write_bytes(dir / "x.pt", bytes);
    const bool refused = is_refused(dir / "x.pt");
    if (i % std::size(corpus) == 0 && bytes != original) {
      CHECK(refused);
    }
  }
}

TEST_CASE("of mutated pickles behind correct checksums only CheckpointErrors come out") {
  const TempDir dir;
  std::mt19937 random(20240502);
  const std::string file = sample_file(dir);
  const size_t begin = file.find(std::string("\x80\x02}", 3));
  const std::string pickle = file.substr(begin, file.find("PK", begin) - begin);
  REQUIRE(pickle.back() == '.');
  const auto write_with = [&dir](const std::string& data) {
    write_archive(dir / "x.pt",
                  {{"data.pkl", data},
                   {"data/0", std::string(48, '\1')},
                   {"data/1", std::string(4, '\1')},
                   {"data/2", std::string(3, '\1')},
                   {"data/3", std::string(8, '\1')}});
  };
  write_with(pickle);
  REQUIRE(read_error(dir / "x.pt") == "");
  for (int i = 0; i < 250 * campaign_scale(); ++i) {
    CAPTURE(i);
    write_with(mutated(pickle, random));
    is_refused(dir / "x.pt");
  }
}

TEST_SUITE_END();
