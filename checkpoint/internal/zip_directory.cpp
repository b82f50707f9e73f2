#include "checkpoint/internal/zip_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "checkpoint/internal/bytes.h"
#include "checkpoint/internal/zip_format.h"

namespace rondo::detail {

namespace {

/// A directory is held in memory whole; this is room for over a million records.
constexpr uint64_t kLargestDirectory = uint64_t{256} << 20;

/// What the end of an archive says.
struct End {
  uint64_t directory = 0;  ///< where it begins
  uint64_t directory_size = 0;
  uint64_t directory_end = 0;  ///< where it must end: the end record begins there
  uint64_t records = 0;
  std::string comment;
};

void check(bool holds, const char* what) {
  if (!holds) {
    throw Malformed(what);
  }
}

/// Why a file without an end record may have been taken for a checkpoint.
std::string diagnose(const RandomAccessFile& file) {
  const std::string start = file.read(0, std::min<uint64_t>(file.size(), 14));
  if (start.compare(0, 2, "PK") == 0) {
    return "a zip archive without an end: it was cut short or damaged";
  }
  if (start == std::string("\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 14)) {
    return "PyTorch's format before 1.6; load it in Python and torch.save it again";
  }
  return "not a zip archive, which torch.save writes, and not safetensors either";
}

/// Position in `tail` of the end record whose comment reaches to the end of the file.
size_t find_end(const RandomAccessFile& file, std::string_view tail) {
  if (tail.size() >= kEndSize) {
    for (size_t at = tail.size() - kEndSize + 1; at-- > 0;) {
      ByteReader in(tail.substr(at));
      if (in.number<uint32_t>() == kEndSignature) {
        in.take(16);
        if (in.number<uint16_t>() == in.left()) {
          return at;
        }
      }
    }
  }
  fail_at({file.path(), "", 0}, diagnose(file));
}

End parse_end(std::string_view bytes) {
  ByteReader in(bytes);
  in.take(4);
  check(in.number<uint16_t>() == 0 && in.number<uint16_t>() == 0, "an archive of several files");
  End end;
  end.records = in.number<uint16_t>();
  check(in.number<uint16_t>() == end.records, "the counts of records differ");
  end.directory_size = in.number<uint32_t>();
  end.directory = in.number<uint32_t>();
  end.comment = in.take(in.number<uint16_t>());
  return end;
}

/// Takes from the zip64 end record what did not fit into the plain one.
void widen(End& end, std::string_view bytes) {
  ByteReader in(bytes);
  check(in.number<uint32_t>() == kZip64EndSignature, "no zip64 end record where it should be");
  in.take(8 + 2 + 2);
  check(in.number<uint32_t>() == 0 && in.number<uint32_t>() == 0, "an archive of several files");
  const uint64_t records = in.number<uint64_t>();
  check(in.number<uint64_t>() == records, "the counts of records differ");
  const uint64_t directory_size = in.number<uint64_t>();
  const uint64_t directory = in.number<uint64_t>();
  end.records = end.records == kElsewhere16 ? records : end.records;
  end.directory_size = end.directory_size == kElsewhere32 ? directory_size : end.directory_size;
  end.directory = end.directory == kElsewhere32 ? directory : end.directory;
}

End read_end(const RandomAccessFile& file) {
  const size_t tail_size = std::min<uint64_t>(file.size(), kEndSize + 0xFFFF);
  const std::string tail = file.read(file.size() - tail_size, tail_size);
  const size_t at = find_end(file, tail);
  const uint64_t position = file.size() - tail_size + at;
  try {
    End end = parse_end(std::string_view(tail).substr(at));
    end.directory_end = position;
    if (position >= kZip64LocatorSize + kZip64EndSize) {
      const std::string locator = file.read(position - kZip64LocatorSize, kZip64LocatorSize);
      ByteReader in(locator);
      if (in.number<uint32_t>() == kZip64LocatorSignature) {
        end.directory_end = position - kZip64LocatorSize - kZip64EndSize;
        widen(end, file.read(end.directory_end, kZip64EndSize));
      }
    }
    check(end.directory <= end.directory_end &&
              end.directory_size == end.directory_end - end.directory,
          "the directory is not where the end of the archive says");
    check(end.directory_size <= kLargestDirectory, "the directory is larger than 256 MiB");
    return end;
  } catch (const Malformed& error) {
    fail_at({file.path(), "", position}, error.what());
  }
}

/// The extra field `wanted` among those in `bytes`; empty when there is none.
std::string_view extra_field(std::string_view bytes, uint16_t wanted) {
  ByteReader in(bytes);
  while (in.left() > 0) {
    const uint16_t id = in.number<uint16_t>();
    const std::string_view field = in.take(in.number<uint16_t>());
    if (id == wanted) {
      return field;
    }
  }
  return {};
}

ZipRecord parse_entry(ByteReader& in) {
  check(in.number<uint32_t>() == kCentralSignature, "no entry of the directory");
  in.take(4);  // versions
  const uint16_t flags = in.number<uint16_t>();
  const uint16_t method = in.number<uint16_t>();
  in.take(4);  // time and date
  ZipRecord record;
  record.crc = in.number<uint32_t>();
  uint64_t packed = in.number<uint32_t>();
  record.size = in.number<uint32_t>();
  const size_t name_size = in.number<uint16_t>();
  const size_t extra_size = in.number<uint16_t>();
  const size_t comment_size = in.number<uint16_t>();
  check(in.number<uint16_t>() == 0, "an archive of several files");
  in.take(2 + 4);  // attributes
  record.header = in.number<uint32_t>();
  record.name = in.take(name_size);
  ByteReader large(extra_field(in.take(extra_size), kZip64Extra));
  for (uint64_t* value : {&record.size, &packed, &record.header}) {
    *value = *value == kElsewhere32 ? large.number<uint64_t>() : *value;
  }
  in.take(comment_size);
  check((flags & kEncryptedFlag) == 0, "an encrypted record");
  record.is_compressed = method != kStored;
  check(record.is_compressed || packed == record.size, "a stored record with two sizes");
  record.size = packed;
  return record;
}

std::vector<ZipRecord> read_entries(const RandomAccessFile& file, const End& end) {
  const std::string bytes = file.read(end.directory, end.directory_size);
  ByteReader in(bytes);
  std::vector<ZipRecord> records;
  std::unordered_set<std::string> names;
  while (in.left() > 0) {
    const uint64_t offset = end.directory + in.position();
    try {
      records.push_back(parse_entry(in));
      check(names.insert(records.back().name).second, "two records of this name");
    } catch (const Malformed& error) {
      fail_at({file.path(), records.empty() ? "" : records.back().name, offset}, error.what());
    }
  }
  if (records.size() != end.records) {
    fail_at({file.path(), "", end.directory},
            fmt::format("the directory has {} records, the end of the archive says {}",
                        records.size(),
                        end.records));
  }
  return records;
}

/// Finds where the record's bytes begin, and that they end before `limit`.
void locate_data(const RandomAccessFile& file, uint64_t limit, ZipRecord& record) {
  check(record.header <= limit && limit - record.header >= kLocalSize,
        "the record's header lies outside the file");
  const std::string header = file.read(record.header, kLocalSize);
  ByteReader in(header);
  check(in.number<uint32_t>() == kLocalSignature, "no header of a record where it should be");
  in.take(2 + 2);  // version, flags
  check((in.number<uint16_t>() != kStored) == record.is_compressed,
        "the record is compressed in one place and stored in the other");
  in.take(2 + 2 + 4 + 4 + 4);  // time, date, checksum, sizes: PyTorch writes some after the data
  const size_t name_size = in.number<uint16_t>();
  const size_t extra_size = in.number<uint16_t>();
  record.data = record.header + kLocalSize + name_size + extra_size;
  check(record.data <= limit && record.size <= limit - record.data,
        "the record ends outside the file");
  check(file.read(record.header + kLocalSize, name_size) == record.name,
        "the record has another name in the directory");
}

}  // namespace

ZipDirectory read_zip_directory(const RandomAccessFile& file) {
  End end = read_end(file);
  ZipDirectory directory{read_entries(file, end), std::move(end.comment)};
  std::sort(directory.records.begin(), directory.records.end(), [](const auto& a, const auto& b) {
    return a.header < b.header;
  });
  uint64_t free_from = 0;
  for (ZipRecord& record : directory.records) {
    try {
      locate_data(file, end.directory, record);
      // Records that share bytes are how a small archive unpacks to a huge one.
      check(record.header >= free_from, "the record overlaps the one before it");
    } catch (const Malformed& error) {
      fail_at({file.path(), record.name, record.header}, error.what());
    }
    free_from = record.data + record.size;
  }
  return directory;
}

}  // namespace rondo::detail
