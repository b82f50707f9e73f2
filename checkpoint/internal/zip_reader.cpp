#include "checkpoint/internal/zip_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "checkpoint/internal/checksum.h"
#include "checkpoint/internal/zip_format.h"

namespace rondo::detail {

namespace {

constexpr uint64_t kReadBlock = uint64_t{1} << 20;

/// The folder that holds data.pkl, with its slash.
std::string find_root(const RandomAccessFile& file, const ZipDirectory& directory) {
  constexpr std::string_view kPickle = "/data.pkl";
  std::string root;
  for (const ZipRecord& record : directory.records) {
    const size_t slash = record.name.find('/');
    if (slash != std::string::npos && record.name.compare(slash, std::string::npos, kPickle) == 0) {
      if (!root.empty()) {
        fail_at({file.path(), record.name, record.header}, "the archive holds two checkpoints");
      }
      root = record.name.substr(0, slash + 1);
    }
  }
  if (root.empty()) {
    fail_at({file.path(), "", 0}, "a zip archive without <folder>/data.pkl, so not a checkpoint");
  }
  return root;
}

}  // namespace

ZipReader::ZipReader(const std::filesystem::path& path)
    : file_(path),
      directory_(read_zip_directory(file_)),
      root_(find_root(file_, directory_)),
      is_verified_(directory_.records.size(), false) {
  for (size_t i = 0; i < directory_.records.size(); ++i) {
    by_name_.emplace(directory_.records[i].name, i);
  }
}

const ZipRecord* ZipReader::find(std::string_view name) const {
  const auto found = by_name_.find(root_ + std::string(name));
  return found == by_name_.end() ? nullptr : &directory_.records[found->second];
}

const ZipRecord& ZipReader::at(std::string_view name) const {
  if (const ZipRecord* record = find(name)) {
    return *record;
  }
  fail_at({file_.path(), std::string(name), 0}, "the record is missing");
}

void ZipReader::read(const ZipRecord& record, void* to) {
  require_stored(record);
  file_.read(record.data, to, record.size);
  expect_checksum(record, checksum(to, record.size));
  is_verified_[index_of(record)] = true;
}

std::shared_ptr<void> ZipReader::map(const ZipRecord& record) {
  require_stored(record);
  expect_checksum(record, checksum_between(record.data, record.data + record.size, 0));
  is_verified_[index_of(record)] = true;
  return file_.map(record.data, record.size);
}

std::string ZipReader::read_text(const ZipRecord& record, uint64_t limit) {
  if (record.size > limit) {
    fail_at(place(record), fmt::format("{} bytes; at most {} are read", record.size, limit));
  }
  std::string text(record.size, '\0');
  read(record, text.data());
  return text;
}

bool ZipReader::is_sealed() const {
  return directory_.comment.size() == seal_of(0).size() &&
         directory_.comment.compare(0, sizeof kSealTag - 1, kSealTag) == 0;
}

void ZipReader::verify_rest() {
  for (size_t i = 0; i < directory_.records.size(); ++i) {
    const ZipRecord& record = directory_.records[i];
    if (!is_verified_[i] && !record.is_compressed) {
      expect_checksum(record, checksum_between(record.data, record.data + record.size, 0));
    }
  }
  if (is_sealed()) {
    verify_seal();
  }
}

FilePlace ZipReader::place(const ZipRecord& record) const {
  return {file_.path(), record.name, record.data};
}

size_t ZipReader::index_of(const ZipRecord& record) const {
  return static_cast<size_t>(&record - directory_.records.data());
}

uint32_t ZipReader::checksum_between(uint64_t begin, uint64_t end, uint32_t before) const {
  std::vector<char> block(std::min(kReadBlock, end - begin));
  while (begin < end) {
    const size_t size = std::min<uint64_t>(block.size(), end - begin);
    file_.read(begin, block.data(), size);
    before = checksum(block.data(), size, before);
    begin += size;
  }
  return before;
}

void ZipReader::require_stored(const ZipRecord& record) const {
  if (record.is_compressed) {
    fail_at(place(record),
            "a compressed record; torch.save writes none: repack the archive with `zip -0`");
  }
}

void ZipReader::expect_checksum(const ZipRecord& record, uint32_t found) const {
  if (found != record.crc) {
    fail_at(
        place(record),
        fmt::format(
            "its checksum is {:08x} and should be {:08x}: the file is damaged", found, record.crc));
  }
}

/// The records are checked already: only what lies between them is read again.
void ZipReader::verify_seal() const {
  uint32_t whole = 0;
  uint64_t position = 0;
  for (const ZipRecord& record : directory_.records) {
    whole = checksum_between(position, record.data, whole);
    whole = joined_checksum(whole, record.crc, record.size);
    position = record.data + record.size;
  }
  const uint64_t digits = file_.size() - kSealDigits;
  whole = checksum_between(position, digits, whole);
  if (directory_.comment != seal_of(whole)) {
    fail_at({file_.path(), "", digits},
            fmt::format("the file's checksum is {:08x}, which does not match its content: a "
                        "header, the padding or the directory is damaged",
                        whole));
  }
}

}  // namespace rondo::detail
