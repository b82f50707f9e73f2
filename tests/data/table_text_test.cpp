#include "data/tables/table_text.h"

#include <doctest/doctest.h>
#include <zstd.h>

#include <fstream>
#include <random>

#include "core/error.h"
#include "data/data_files.h"
#include "support/campaign.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

TEST_SUITE_BEGIN("data/table_text");

namespace {

constexpr uint64_t kMuch = 1 << 30;

std::string zstd_of(const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  return packed;
}

std::string gzip_of(const TempDir& dir, const std::string& text) {
  write_gzip(dir / "packed", text);
  std::ifstream stream(dir / "packed", std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::string read(const TempDir& dir, const std::string& bytes, uint64_t most = kMuch) {
  write_file(dir / "t.csv", bytes);
  return std::string(TableText(dir / "t.csv", most).bytes());
}

}  // namespace

TEST_CASE("plain, gzipped and zstd text is read, without its byte order mark") {
  const TempDir dir;
  const std::string text =
      "\xef\xbb\xbf"
      "a,b\n1,2\n";
  for (const std::string& bytes : {text, gzip_of(dir, text), zstd_of(text)}) {
    CHECK(read(dir, bytes) == "a,b\n1,2\n");
  }
  CHECK(read(dir, "").empty());
}

TEST_CASE("members of a gzip file and frames of a zstd file follow each other") {
  const TempDir dir;
  CHECK(read(dir, gzip_of(dir, "a,b\n") + gzip_of(dir, "1,2\n")) == "a,b\n1,2\n");
  CHECK(read(dir, zstd_of("a,b\n") + zstd_of("1,2\n")) == "a,b\n1,2\n");
}

TEST_CASE("a small file that unpacks to much is refused at the limit, naming the key") {
  const TempDir dir;
  const std::string zeros(64 << 20, '0');
  for (const std::string& bytes : {gzip_of(dir, zeros), zstd_of(zeros)}) {
    REQUIRE(bytes.size() < 1 << 17);
    const std::string message = message_of([&] { read(dir, bytes, 4 << 20); });
    CHECK(contains(message, "max_unpacked_bytes"));
    CHECK(contains(message, "t.csv"));
    CHECK(read(dir, bytes).size() == zeros.size());
  }
}

TEST_CASE("streams that end early or are damaged are told with file and offset") {
  const TempDir dir;
  std::string text;
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    text += static_cast<char>('0' + random() % 10);
  }
  for (const std::string& bytes : {gzip_of(dir, text), zstd_of(text)}) {
    const std::string message = message_of([&] { read(dir, bytes.substr(0, bytes.size() / 2)); });
    CHECK(contains(message, "early"));
    CHECK(contains(message, "offset"));
  }
}

TEST_CASE("no damage makes it fail in another way than by a DataError") {
  const TempDir dir;
  std::mt19937 random(2);
  const std::string text = "a,b\n1,2\n3,4\n";
  for (const std::string& whole : {gzip_of(dir, text), zstd_of(text)}) {
    for (int trial = 0; trial < 100 * campaign_scale(); ++trial) {
      std::string bytes = whole;
      bytes[4 + random() % (bytes.size() - 4)] ^= static_cast<char>(1 << random() % 8);
      try {
        read(dir, bytes, 1 << 20);
      } catch (const DataError&) {
      }
    }
  }
}

TEST_CASE("what is no text is refused with what to do") {
  const TempDir dir;
  const std::pair<std::string, const char*> cases[] = {
      {std::string("PK\x03\x04", 4), "CSV"},
      {"PAR1", "docs/data.md"},
      {"\xff\xfe"
       "a",
       "iconv"},
      {std::string("1,2\0,3\n", 7), "offset 3"},
  };
  for (const auto& [bytes, fact] : cases) {
    const std::string message = message_of([&, text = bytes] { read(dir, text); });
    CHECK(contains(message, fact));
    CHECK(contains(message, "t.csv"));
  }
}

TEST_SUITE_END();
