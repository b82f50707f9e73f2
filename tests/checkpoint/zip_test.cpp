#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "checkpoint/archives.h"
#include "checkpoint/internal/zip_reader.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

TEST_SUITE_BEGIN("checkpoint/zip");

namespace {

/// Name and bytes of a record, without a checksum: what zip_reader reads but rondo does not write.
struct RawRecord {
  std::string name;
  std::string bytes;
  uint16_t method = 0;
  uint16_t flags = 0;
};

template <class T>
std::string number(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

std::string local_header(const RawRecord& record) {
  const auto size = static_cast<uint32_t>(record.bytes.size());
  return number<uint32_t>(0x04034b50) + number<uint16_t>(20) + number(record.flags) +
         number(record.method) + number<uint32_t>(0) + number<uint32_t>(0) + number(size) +
         number(size) + number(static_cast<uint16_t>(record.name.size())) + number<uint16_t>(0) +
         record.name;
}

std::string central_header(const RawRecord& record, uint32_t offset) {
  const auto size = static_cast<uint32_t>(record.bytes.size());
  return number<uint32_t>(0x02014b50) + number<uint32_t>(20) + number(record.flags) +
         number(record.method) + number<uint32_t>(0) + number<uint32_t>(0) + number(size) +
         number(size) + number(static_cast<uint16_t>(record.name.size())) + std::string(12, '\0') +
         number(offset) + record.name;
}

std::string end_record(uint16_t records, size_t directory, size_t directory_size) {
  return number<uint32_t>(0x06054b50) + number<uint32_t>(0) + number(records) + number(records) +
         number(static_cast<uint32_t>(directory_size)) + number(static_cast<uint32_t>(directory)) +
         number<uint16_t>(0);
}

std::string archive_of(const std::vector<RawRecord>& records) {
  std::string bytes;
  std::string directory;
  for (const RawRecord& record : records) {
    directory += central_header(record, static_cast<uint32_t>(bytes.size()));
    bytes += local_header(record) + record.bytes;
  }
  return bytes + directory +
         end_record(static_cast<uint16_t>(records.size()), bytes.size(), directory.size());
}

std::string open_error(const TempDir& dir, const std::string& bytes) {
  write_bytes(dir / "x.pt", bytes);
  try {
    const rondo::detail::ZipReader zip(dir / "x.pt");
    return "";
  } catch (const CheckpointError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("records come back, each beginning at a multiple of 64 bytes") {
  const TempDir dir;
  const Records records{{"data.pkl", "p"}, {"empty", ""}, {"data/0", std::string(1000, 'x')}};
  for (const uint32_t zip64_from : {0xFFFFFFFFu, 500u, 1u}) {
    write_archive(dir / "x.pt", records, zip64_from);
    rondo::detail::ZipReader zip(dir / "x.pt");
    for (const auto& [name, bytes] : records) {
      const rondo::detail::ZipRecord& record = zip.at(name);
      CHECK(record.data % 64 == 0);
      CHECK(zip.read_text(record, 1000) == bytes);
    }
    CHECK(zip.is_sealed());
    CHECK_NOTHROW(zip.verify_rest());
    CHECK(zip.find("data/1") == nullptr);
    CHECK_THROWS_AS(zip.at("data/1"), CheckpointError);
    CHECK_THROWS_AS(zip.read_text(zip.at("data/0"), 999), CheckpointError);
  }
}

TEST_CASE("more records than a plain zip archive can count") {
  const TempDir dir;
  Records records{{"data.pkl", ""}};
  for (int i = 0; i < 66000; ++i) {
    records.emplace_back(std::to_string(i), "");
  }
  write_archive(dir / "x.pt", records);
  rondo::detail::ZipReader zip(dir / "x.pt");
  CHECK(zip.find("65999") != nullptr);
  CHECK_NOTHROW(zip.verify_rest());
}

TEST_CASE("a plain archive without a seal is read") {
  const TempDir dir;
  CHECK(open_error(dir, archive_of({{"a/data.pkl", "x"}, {"a/b", ""}, {"other/c", ""}})) == "");
}

TEST_CASE("a compressed record is passed over, and not read") {
  const TempDir dir;
  CHECK(open_error(dir, archive_of({{"a/data.pkl", "x"}, {"a/code/net.py", "zz", 8}})) == "");
  rondo::detail::ZipReader zip(dir / "x.pt");
  CHECK(zip.find("code/net.py")->is_compressed);
  CHECK_THROWS_AS(zip.read_text(zip.at("code/net.py"), 10), CheckpointError);
  write_bytes(dir / "x.pt", archive_of({{"a/data.pkl", "x", 8}}));
  CHECK(contains(read_error(dir / "x.pt"), "compressed"));
}

TEST_CASE("archives with tricks are refused") {
  const TempDir dir;
  const RawRecord pickle{"a/data.pkl", "x"};
  CHECK(contains(open_error(dir, archive_of({{"a/data.pkl", "x", 0, 1}})), "encrypted"));
  CHECK(contains(open_error(dir, archive_of({pickle, pickle})), "two"));
  CHECK(contains(open_error(dir, archive_of({pickle, {"b/data.pkl", "x"}})), "two checkpoints"));
  CHECK(contains(open_error(dir, archive_of({{"data.pkl", "x"}})), "data.pkl"));
  CHECK(contains(open_error(dir, archive_of({})), "data.pkl"));
  std::string renamed = archive_of({pickle});
  renamed[30] = 'b';
  CHECK(contains(open_error(dir, renamed), "another name"));
}

TEST_CASE("records that share bytes are refused") {
  const TempDir dir;
  const RawRecord inner{"a/b", "12345"};
  RawRecord outer{"a/data.pkl", local_header(inner) + inner.bytes};
  const std::string bytes = local_header(outer) + outer.bytes;
  const auto inside = static_cast<uint32_t>(local_header(outer).size());
  const std::string directory = central_header(outer, 0) + central_header(inner, inside);
  CHECK(contains(open_error(dir, bytes + directory + end_record(2, bytes.size(), directory.size())),
                 "overlaps"));
}

TEST_CASE("sizes and offsets that point outside the file are refused") {
  const TempDir dir;
  const std::string bytes = archive_of({{"a/data.pkl", "x"}});
  const size_t directory = bytes.find("PK\x01\x02");
  for (const size_t field : {20u, 24u, 28u, 30u, 32u, 42u}) {  // sizes, lengths and the offset
    std::string changed = bytes;
    changed[directory + field + 1] = '\x7f';
    CHECK(open_error(dir, changed) != "");
  }
  const size_t end = bytes.find("PK\x05\x06");
  for (const size_t field : {4u, 6u, 8u, 10u, 12u, 16u, 20u}) {
    std::string changed = bytes;
    changed[end + field] ^= 1;
    CHECK(open_error(dir, changed) != "");
  }
}

TEST_CASE("what is not a regular file is refused") {
  const TempDir dir;
  CHECK_THROWS_AS(rondo::detail::ZipReader(dir.path()), IoError);
  CHECK_THROWS_AS(rondo::detail::ZipReader("/dev/null"), IoError);
}

TEST_SUITE_END();
