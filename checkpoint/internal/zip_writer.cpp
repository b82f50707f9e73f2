#include "checkpoint/internal/zip_writer.h"

#include "checkpoint/internal/bytes.h"
#include "checkpoint/internal/checksum.h"
#include "checkpoint/internal/zip_format.h"

namespace rondo::detail {

namespace {

// PyTorch's readers take the folder's name from the first record and give it no meaning.
constexpr const char kRoot[] = "archive/";

// No times are written, so that equal states give equal files; 1980-01-01 is zip's first day.
constexpr uint16_t kTime = 0;
constexpr uint16_t kDate = 0x0021;

constexpr uint16_t kVersion = 20;  // of the zip format needed to read: 2.0
constexpr uint16_t kZip64Version = 45;

uint16_t size16(const std::string& text) {
  return static_cast<uint16_t>(text.size());
}

}  // namespace

ZipWriter::ZipWriter(WritableFile& file, uint32_t zip64_from)
    : file_(file), zip64_from_(zip64_from) {}

void ZipWriter::add(std::string_view name, const void* bytes, size_t size) {
  Record record;
  record.name = kRoot + std::string(name);
  record.crc = checksum(bytes, size);
  record.size = size;
  record.offset = position_;
  append(local_header(record));
  file_.append(bytes, size);
  crc_ = joined_checksum(crc_, record.crc, size);
  position_ += size;
  records_.push_back(std::move(record));
}

void ZipWriter::finish() {
  const uint64_t directory = position_;
  for (const Record& record : records_) {
    append(central_header(record));
  }
  append(end_of_directory(directory, position_ - directory));
  append(seal_of(crc_).substr(sizeof kSealTag - 1));
}

std::string ZipWriter::local_header(const Record& record) const {
  const bool large = is_large(record.size);
  std::string extra;
  if (large) {
    put(extra, kZip64Extra);
    put(extra, uint16_t{16});
    put(extra, record.size);  // as it was, and as it is stored
    put(extra, record.size);
  }
  const uint64_t padding_begin = record.offset + kLocalSize + record.name.size() + extra.size() + 4;
  const uint64_t padding = (kRecordAlignment - padding_begin % kRecordAlignment) % kRecordAlignment;
  put(extra, kPaddingExtra);
  put(extra, static_cast<uint16_t>(padding));
  extra.append(padding, 'Z');

  std::string header;
  put(header, kLocalSignature);
  put(header, large ? kZip64Version : kVersion);
  put(header, kUtf8Flag);
  put(header, kStored);
  put(header, kTime);
  put(header, kDate);
  put(header, record.crc);
  put(header, large ? kElsewhere32 : static_cast<uint32_t>(record.size));
  put(header, large ? kElsewhere32 : static_cast<uint32_t>(record.size));
  put(header, size16(record.name));
  put(header, size16(extra));
  return header + record.name + extra;
}

std::string ZipWriter::central_header(const Record& record) const {
  std::string numbers;
  if (is_large(record.size)) {
    put(numbers, record.size);
    put(numbers, record.size);
  }
  if (is_large(record.offset)) {
    put(numbers, record.offset);
  }
  std::string extra;
  if (!numbers.empty()) {
    put(extra, kZip64Extra);
    put(extra, size16(numbers));
    extra += numbers;
  }
  const uint16_t version = numbers.empty() ? kVersion : kZip64Version;

  std::string header;
  put(header, kCentralSignature);
  put(header, version);  // made by
  put(header, version);  // needed
  put(header, kUtf8Flag);
  put(header, kStored);
  put(header, kTime);
  put(header, kDate);
  put(header, record.crc);
  put(header, narrow(record.size));
  put(header, narrow(record.size));
  put(header, size16(record.name));
  put(header, size16(extra));
  put(header, uint16_t{0});  // comment
  put(header, uint16_t{0});  // disk
  put(header, uint16_t{0});  // internal attributes
  put(header, uint32_t{0});  // external attributes
  put(header, narrow(record.offset));
  return header + record.name + extra;
}

std::string ZipWriter::end_of_directory(uint64_t directory, uint64_t directory_size) const {
  const uint64_t count = records_.size();
  const bool many = count >= kElsewhere16;
  std::string end;
  if (many || is_large(directory) || is_large(directory_size)) {
    put(end, kZip64EndSignature);
    put(end, uint64_t{kZip64EndSize - 12});  // what follows this number
    put(end, kZip64Version);
    put(end, kZip64Version);
    put(end, uint32_t{0});  // this disk
    put(end, uint32_t{0});  // the directory's disk
    put(end, count);
    put(end, count);
    put(end, directory_size);
    put(end, directory);
    put(end, kZip64LocatorSignature);
    put(end, uint32_t{0});
    put(end, directory + directory_size);
    put(end, uint32_t{1});  // disks
  }
  const uint16_t count16 = many ? kElsewhere16 : static_cast<uint16_t>(count);
  put(end, kEndSignature);
  put(end, uint16_t{0});
  put(end, uint16_t{0});
  put(end, count16);
  put(end, count16);
  put(end, narrow(directory_size));
  put(end, narrow(directory));
  put(end, static_cast<uint16_t>(sizeof kSealTag - 1 + kSealDigits));
  return end + kSealTag;
}

void ZipWriter::append(std::string_view bytes) {
  file_.append(bytes.data(), bytes.size());
  crc_ = checksum(bytes.data(), bytes.size(), crc_);
  position_ += bytes.size();
}

uint32_t ZipWriter::narrow(uint64_t value) const {
  return is_large(value) ? kElsewhere32 : static_cast<uint32_t>(value);
}

}  // namespace rondo::detail
