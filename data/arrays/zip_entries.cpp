#include "data/arrays/zip_entries.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "core/error.h"

namespace rondo::detail {

namespace {

// Source: PKWARE APPNOTE.TXT 6.3.10, sections 4.3 and 4.5.3.
constexpr uint32_t kLocal = 0x04034b50;
constexpr uint32_t kCentral = 0x02014b50;
constexpr uint32_t kEnd = 0x06054b50;
constexpr uint32_t kEnd64 = 0x06064b50;
constexpr uint32_t kLocator64 = 0x07064b50;
constexpr size_t kLocalSize = 30;
constexpr size_t kCentralSize = 46;
constexpr size_t kEndSize = 22;
constexpr size_t kEnd64Size = 56;
constexpr size_t kLocator64Size = 20;
constexpr uint64_t kElsewhere = 0xFFFFFFFF;
constexpr uint16_t kExtra64 = 1;
constexpr uint64_t kMostDeflated = 1032;  // how much deflate shortens at best, as zlib says

/// Little-endian numbers of the archive, each read checked against its end.
class Archive {
 public:
  Archive(const std::filesystem::path& path, std::string_view bytes) : path_(path), bytes_(bytes) {}

  [[noreturn]] void fail(uint64_t offset, const std::string& what) const {
    throw DataError(fmt::format("{}: offset {}: {}", path_.string(), offset, what));
  }

  void require(bool holds, uint64_t offset, const char* what) const {
    if (!holds) {
      fail(offset, what);
    }
  }

  uint64_t number(uint64_t offset, size_t size) const {
    require(offset <= bytes_.size() && size <= bytes_.size() - offset,
            offset,
            "the archive ends inside of a header");
    uint64_t value = 0;
    for (size_t i = 0; i < size; ++i) {
      value |= uint64_t{static_cast<unsigned char>(bytes_[offset + i])} << (8 * i);
    }
    return value;
  }

  std::string_view text(uint64_t offset, uint64_t size) const {
    require(offset <= bytes_.size() && size <= bytes_.size() - offset,
            offset,
            "the archive ends inside of a name");
    return bytes_.substr(offset, size);
  }

  uint64_t size() const { return bytes_.size(); }

 private:
  const std::filesystem::path& path_;
  std::string_view bytes_;
};

struct Directory {
  uint64_t begin = 0;
  uint64_t entries = 0;
};

uint64_t find_end(const Archive& archive) {
  constexpr uint64_t kMostComment = 0xFFFF;
  if (archive.size() >= kEndSize) {
    const uint64_t last = archive.size() - kEndSize;
    for (uint64_t back = 0; back <= std::min(last, kMostComment); ++back) {
      if (archive.number(last - back, 4) == kEnd && archive.number(last - back + 20, 2) == back) {
        return last - back;
      }
    }
  }
  archive.fail(0, "this is not a zip archive, or it was cut short");
}

Directory find_directory(const Archive& archive) {
  const uint64_t end = find_end(archive);
  Directory found{archive.number(end + 16, 4), archive.number(end + 10, 2)};
  const bool has_64 =
      end >= kLocator64Size + kEnd64Size && archive.number(end - kLocator64Size, 4) == kLocator64;
  if (has_64) {
    const uint64_t at = archive.number(end - kLocator64Size + 8, 8);
    archive.require(archive.number(at, 4) == kEnd64, at, "no zip64 end record");
    found = {archive.number(at + 48, 8), archive.number(at + 32, 8)};
  }
  archive.require(found.begin <= end && found.entries <= (end - found.begin) / kCentralSize,
                  end,
                  "the directory does not fit into the archive");
  return found;
}

/// Takes the sizes that did not fit into 32 bits from the extra field.
void widen(const Archive& archive, uint64_t at, uint64_t end, uint64_t* sizes, size_t count) {
  while (at + 4 <= end) {
    const uint64_t id = archive.number(at, 2);
    const uint64_t length = archive.number(at + 2, 2);
    at += 4;
    for (size_t i = 0, taken = 0; id == kExtra64 && i < count; ++i) {
      if (sizes[i] == kElsewhere) {
        archive.require(taken + 8 <= length, at, "a zip64 field that is too short");
        sizes[i] = archive.number(at + taken, 8);
        taken += 8;
      }
    }
    at += length;
  }
}

/// Reads the entry at `at` and moves behind it.
ZipEntry read_entry(const Archive& archive, uint64_t& at) {
  archive.require(archive.number(at, 4) == kCentral, at, "no entry of the directory");
  const uint64_t flags = archive.number(at + 8, 2);
  const uint64_t method = archive.number(at + 10, 2);
  const uint64_t name = archive.number(at + 28, 2);
  const uint64_t extra = archive.number(at + 30, 2);
  // Size, packed size, offset: the order of the zip64 field.
  uint64_t sizes[] = {
      archive.number(at + 24, 4), archive.number(at + 20, 4), archive.number(at + 42, 4)};
  ZipEntry entry;
  entry.name = archive.text(at + kCentralSize, name);
  widen(archive, at + kCentralSize + name, at + kCentralSize + name + extra, sizes, 3);
  archive.require((flags & 1) == 0, at, "an entry is encrypted");
  archive.require(method == 0 || method == 8, at, "an entry is neither stored nor deflated");
  const uint64_t local = sizes[2];
  archive.require(local <= archive.size(), at, "an entry lies outside of the archive");
  archive.require(archive.number(local, 4) == kLocal, local, "no header of an entry");
  const uint64_t begin =
      local + kLocalSize + archive.number(local + 26, 2) + archive.number(local + 28, 2);
  archive.require(begin <= archive.size() && sizes[1] <= archive.size() - begin,
                  at,
                  "the bytes of an entry are not in the archive");
  entry.data = begin;
  entry.packed = sizes[1];
  entry.size = sizes[0];
  entry.crc = static_cast<uint32_t>(archive.number(at + 16, 4));
  entry.is_deflated = method == 8;
  const bool is_possible = entry.is_deflated ? entry.size / kMostDeflated <= entry.packed + 1
                                             : entry.size == entry.packed;
  archive.require(is_possible, at, "the size of an entry does not match its bytes");
  at += kCentralSize + name + extra + archive.number(at + 32, 2);
  return entry;
}

struct EndInflate {
  void operator()(z_stream* stream) const { inflateEnd(stream); }
};

/// False when the bytes are no deflate stream of this size.
bool inflate_into(std::string& to, std::string_view from) {
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) {
    return false;
  }
  const std::unique_ptr<z_stream, EndInflate> end(&stream);
  constexpr size_t kMost = std::numeric_limits<uInt>::max();
  auto* next = reinterpret_cast<const Bytef*>(from.data());
  auto* out = reinterpret_cast<Bytef*>(to.data());
  size_t in_left = from.size();
  size_t out_left = to.size();
  int code = Z_OK;
  while (code == Z_OK) {
    const auto in_now = static_cast<uInt>(std::min(in_left, kMost));
    const auto out_now = static_cast<uInt>(std::min(out_left, kMost));
    stream.next_in = const_cast<Bytef*>(next);
    stream.avail_in = in_now;
    stream.next_out = out;
    stream.avail_out = out_now;
    code = inflate(&stream, Z_NO_FLUSH);
    next += in_now - stream.avail_in;
    in_left -= in_now - stream.avail_in;
    out += out_now - stream.avail_out;
    out_left -= out_now - stream.avail_out;
  }
  return code == Z_STREAM_END && in_left == 0 && out_left == 0;
}

uint32_t checksum(std::string_view bytes) {
  return static_cast<uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace

std::vector<ZipEntry> read_zip_entries(const std::filesystem::path& path, std::string_view bytes) {
  const Archive archive(path, bytes);
  const Directory directory = find_directory(archive);
  std::vector<ZipEntry> entries;
  uint64_t at = directory.begin;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    entries.push_back(read_entry(archive, at));
  }
  return entries;
}

std::string unpack_zip_entry(const std::filesystem::path& path,
                             std::string_view bytes,
                             const ZipEntry& entry) {
  const std::string_view packed = bytes.substr(entry.data, entry.packed);
  std::string content;
  bool is_whole = true;
  if (entry.is_deflated) {
    content.resize(entry.size);
    is_whole = inflate_into(content, packed);
  } else {
    content = packed;
  }
  if (!is_whole || checksum(content) != entry.crc) {
    throw DataError(fmt::format(
        "{}: offset {}: the entry \"{}\" is damaged", path.string(), entry.data, entry.name));
  }
  return content;
}

}  // namespace rondo::detail
