// The readers of every_reader() with the files of tests/fuzz/corpus and changed ones. libFuzzer
// takes the same readers much further: `.ci/run --full=fuzz`.

#include <doctest/doctest.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "core/random.h"
#include "fuzz/readers.h"
#include "support/campaign.h"

namespace fs = std::filesystem;

using namespace rondo;
using namespace rondo::test;

namespace {

std::vector<fs::path> corpus_of(const Reader& reader) {
  std::vector<fs::path> files;
  for (const auto& entry :
       fs::directory_iterator(fs::path(RONDO_SOURCE_DIR) / "tests/fuzz/corpus" / reader.name)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string content(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// Up to four changes: a bit, a byte, an end, a run of bytes that is doubled or left out.
std::string changed(std::string bytes, KeyedRandom& random) {
  for (uint64_t changes = 1 + random.below(4); changes > 0 && !bytes.empty(); --changes) {
    const auto at = static_cast<size_t>(random.below(bytes.size()));
    switch (random.below(5)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.below(8)));
        break;
      case 1:
        bytes[at] = static_cast<char>(random.below(256));
        break;
      case 2:
        bytes.resize(at);
        break;
      case 3:
        bytes.insert(at, bytes.substr(at, 1 + random.below(16)));
        break;
      default:
        bytes.erase(at, 1 + random.below(16));
    }
  }
  return bytes;
}

/// The exception that is no `Error`; "" when there is none.
std::string let_out_by(const Reader& reader, const std::string& bytes) {
  try {
    reader.read(bytes);
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace

TEST_SUITE_BEGIN("fuzz/corpus");

TEST_CASE("each reader takes every file of its corpus") {
  for (const Reader& reader : every_reader()) {
    const std::vector<fs::path> files = corpus_of(reader);
    CAPTURE(std::string(reader.name));
    REQUIRE_FALSE(files.empty());
    for (const fs::path& file : files) {
      CAPTURE(file.string());
      CHECK(reader.read(content(file)));
    }
  }
}

TEST_CASE("changed files are read or refused") {
  const int rounds = 100 * campaign_scale();
  for (const Reader& reader : every_reader()) {
    for (const fs::path& file : corpus_of(reader)) {
      const std::string bytes = content(file);
      for (int seed = 0; seed < rounds; ++seed) {
        KeyedRandom random(static_cast<uint64_t>(seed));
        CAPTURE(file.string());
        CAPTURE(seed);
        CHECK(let_out_by(reader, changed(bytes, random)) == "");
      }
    }
  }
}

TEST_SUITE_END();
