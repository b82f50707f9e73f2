#include "data/records/tar_file.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/error.h"

namespace rondo {

namespace {

constexpr int64_t kTarBlock = 512;
constexpr int64_t kLongestName = 1 << 16;  // and the longest text of a pax header

/// A field of a header up to its first zero byte.
std::string_view field(std::string_view header, size_t at, size_t size) {
  const std::string_view whole = header.substr(at, size);
  return whole.substr(0, whole.find('\0'));
}

/// A number in octal digits, or in base 256 where the first bit is set; nothing for another text.
std::optional<int64_t> number(std::string_view header, size_t at, size_t size) {
  const std::string_view text = header.substr(at, size);
  if ((static_cast<unsigned char>(text.front()) & 0x80U) != 0) {
    uint64_t value = static_cast<unsigned char>(text.front()) & 0x7FU;
    for (const char c : text.substr(1)) {
      if ((value >> 55U) != 0) {
        return std::nullopt;
      }
      value = value << 8U | static_cast<unsigned char>(c);
    }
    return static_cast<int64_t>(value);
  }
  int64_t value = 0;
  bool has_digit = false;
  for (const char c : text) {
    const bool is_digit = c >= '0' && c <= '7';
    if (!is_digit && (has_digit || (c != ' ' && c != '\0'))) {
      const bool is_end = c == ' ' || c == '\0';
      return is_end ? std::optional<int64_t>(value) : std::nullopt;
    }
    has_digit = has_digit || is_digit;
    value = is_digit ? value * 8 + (c - '0') : value;
  }
  return value;
}

/// The sum of the header's bytes, its own digits counted as blanks.
bool has_right_sum(std::string_view header) {
  constexpr size_t kSum = 148;
  int64_t sum = 8 * ' ';
  for (size_t i = 0; i < header.size(); ++i) {
    sum += i >= kSum && i < kSum + 8 ? 0 : static_cast<unsigned char>(header[i]);
  }
  return number(header, kSum, 8) == sum;
}

bool is_zero(std::string_view header) {
  return header.find_first_not_of('\0') == std::string_view::npos;
}

/// What the headers before a file's own say about it.
struct Extended {
  std::string name = {};
  std::optional<int64_t> size = {};
};

/// Records `LENGTH KEY=VALUE\n` of a pax header. \return false when one is damaged
bool read_pax(std::string_view text, Extended& extended) {
  while (!text.empty() && text.front() != '\0') {
    size_t length = 0;
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, length);
    if (read.ec != std::errc() || read.ptr == end || *read.ptr != ' ' || length > text.size() ||
        length < static_cast<size_t>(read.ptr - text.data()) + 2) {
      return false;
    }
    const std::string_view record = text.substr(0, length - 1);  // without the line's end
    const size_t begin = static_cast<size_t>(read.ptr - text.data()) + 1;
    const size_t equals = record.find('=', begin);
    if (equals == std::string_view::npos) {
      return false;
    }
    const std::string_view key = record.substr(begin, equals - begin);
    const std::string_view value = record.substr(equals + 1);
    if (key == "path") {
      extended.name = value;
    } else if (key == "size") {
      int64_t size = 0;
      const auto parsed = std::from_chars(value.data(), value.data() + value.size(), size);
      if (parsed.ec != std::errc() || parsed.ptr != value.data() + value.size()) {
        return false;
      }
      extended.size = size;
    }
    text.remove_prefix(length);
  }
  return true;
}

std::string name_of(std::string_view header) {
  const std::string name(field(header, 0, 100));
  const std::string prefix(field(header, 345, 155));
  const bool has_prefix = header.substr(257, 6) == std::string_view("ustar\0", 6);
  return has_prefix && !prefix.empty() ? prefix + "/" + name : name;
}

}  // namespace

TarFile::TarFile(std::filesystem::path path)
    : path_(std::move(path)), file_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (file_.get() < 0) {
    throw IoError(fmt::format("{}: cannot be opened", path_.string()), errno);
  }
  const auto end = ::lseek(file_.get(), 0, SEEK_END);
  if (end < 0) {
    throw IoError(fmt::format("{}: its size is not known", path_.string()), errno);
  }
  size_ = end;
  const std::string begin = read(0, std::min<int64_t>(size_, 4));
  if (begin.substr(0, 2) == "\x1f\x8b" || begin == "\x28\xb5\x2f\xfd") {
    fail(0, "the archive is compressed, and cannot be read from the middle; unpack it");
  }
}

void TarFile::fail(int64_t offset, const std::string& what) const {
  throw DataError(fmt::format("{}: offset {}: {}", path_.string(), offset, what));
}

std::string TarFile::read(int64_t offset, int64_t size) const {
  std::string bytes(static_cast<size_t>(size), '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::pread(file_.get(),
                                bytes.data() + done,
                                bytes.size() - done,
                                static_cast<off_t>(offset + static_cast<int64_t>(done)));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      throw IoError(fmt::format("{}: cannot be read", path_.string()), errno);
    }
    if (got == 0) {
      fail(offset + static_cast<int64_t>(done), "the archive ends here");
    }
    done += static_cast<size_t>(got);
  }
  return bytes;
}

std::optional<TarMember> TarFile::member_at(int64_t offset) const {
  Extended extended;
  while (offset + kTarBlock <= size_) {
    const std::string header = read(offset, kTarBlock);
    if (is_zero(header)) {
      return std::nullopt;
    }
    const std::optional<int64_t> in_header = number(header, 124, 12);
    if (!has_right_sum(header) || !in_header || *in_header < 0) {
      fail(offset, "this is no header of a tar archive");
    }
    const char type = header[156];
    const bool is_file = type == '0' || type == '\0' || type == '7';
    const int64_t size = is_file ? extended.size.value_or(*in_header) : *in_header;
    const int64_t data = offset + kTarBlock;
    if (size < 0 || size > size_ - data) {
      fail(offset,
           fmt::format("a file of {} bytes, of which the archive has {}", size, size_ - data));
    }
    const int64_t next = data + (size + kTarBlock - 1) / kTarBlock * kTarBlock;
    if (is_file) {
      return TarMember{extended.name.empty() ? name_of(header) : extended.name, data, size, next};
    }
    const bool is_extended = type == 'x' || type == 'L';
    if (is_extended && size > kLongestName) {
      fail(offset, fmt::format("a name of {} bytes, more than {}", size, kLongestName));
    }
    if (type == 'L') {
      extended.name = read(data, size).c_str();
    } else if (type == 'x' && !read_pax(read(data, size), extended)) {
      fail(data, "a damaged pax header");
    } else if (!is_extended) {
      extended = {};  // it was a folder's, or a link's
    }
    offset = next;
  }
  return std::nullopt;
}

std::string TarFile::content(const TarMember& member) const {
  return read(member.offset, member.size);
}

}  // namespace rondo
