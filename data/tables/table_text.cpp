#include "data/tables/table_text.h"

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include <limits>
#include <new>
#include <utility>

#include "core/error.h"
#include "core/utf8.h"
#include "data/tables/json_lines.h"
#include "data/tables/sqlite_rows.h"

namespace rondo {

namespace {

constexpr size_t kBlock = 1 << 20;
constexpr std::string_view kSqlite = "SQLite format 3";

/// What a packed file becomes, block by block.
class Unpacked {
 public:
  Unpacked(const std::filesystem::path& path, uint64_t most) : path_(path), most_(most) {}

  /// Room for a block at the end.
  char* room() {
    used_ = bytes_.size();
    bytes_.resize(used_ + kBlock);
    return bytes_.data() + used_;
  }

  void keep(size_t size) {
    bytes_.resize(used_ + size);
    if (bytes_.size() > most_) {
      throw DataError(fmt::format(
          "{}: it unpacks to more than max_unpacked_bytes, {} bytes; raise the limit if you trust "
          "the file, or unpack it",
          path_.string(),
          most_));
    }
  }

  [[noreturn]] void fail(const char* format, const std::string& reason) const {
    throw DataError(fmt::format("{}: the {} stream {}, at offset {} of its content",
                                path_.string(),
                                format,
                                reason,
                                bytes_.size()));
  }

  std::string take() && { return std::move(bytes_); }

 private:
  const std::filesystem::path& path_;
  uint64_t most_;
  std::string bytes_;
  size_t used_ = 0;
};

/// zlib's state for one file.
class Inflater {
 public:
  explicit Inflater(std::string_view packed) : rest_(packed) {
    constexpr int kGzip = 15 + 16;  // the largest window, with a gzip header
    if (::inflateInit2(&stream_, kGzip) != Z_OK) {
      throw std::bad_alloc();
    }
  }

  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  ~Inflater() { ::inflateEnd(&stream_); }

  /// Fills a block. \return zlib's code
  int fill(char* to, size_t& size) {
    feed();
    stream_.next_out = reinterpret_cast<Bytef*>(to);
    stream_.avail_out = static_cast<uInt>(kBlock);
    const int code = ::inflate(&stream_, Z_NO_FLUSH);
    size = kBlock - stream_.avail_out;
    return code;
  }

  /// After the end of a member: whether another one follows.
  bool begins_another() {
    feed();
    const bool is_member = stream_.avail_in >= 2 && stream_.next_in[0] == 0x1f;
    return is_member && ::inflateReset(&stream_) == Z_OK;
  }

  std::string reason() const { return stream_.msg != nullptr ? stream_.msg : "data error"; }

 private:
  void feed() {
    if (stream_.avail_in == 0 && !rest_.empty()) {
      const size_t most = std::numeric_limits<uInt>::max();
      const std::string_view part = rest_.substr(0, most);
      rest_.remove_prefix(part.size());
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(part.data()));
      stream_.avail_in = static_cast<uInt>(part.size());
    }
  }

  std::string_view rest_;
  z_stream stream_{};
};

std::string gunzipped(std::string_view packed, Unpacked out) {
  Inflater inflater(packed);
  while (true) {
    size_t size = 0;
    const int code = inflater.fill(out.room(), size);
    out.keep(size);
    if (code == Z_STREAM_END) {
      if (!inflater.begins_another()) {
        return std::move(out).take();
      }
    } else if (code == Z_BUF_ERROR) {
      out.fail("gzip", "ends early");
    } else if (code != Z_OK) {
      out.fail("gzip", "is damaged: " + inflater.reason());
    }
  }
}

struct FreeContext {
  void operator()(ZSTD_DCtx* context) const { ::ZSTD_freeDCtx(context); }
};

std::string unzstd(std::string_view packed, Unpacked out) {
  const std::unique_ptr<ZSTD_DCtx, FreeContext> context(::ZSTD_createDCtx());
  if (!context) {
    throw std::bad_alloc();
  }
  ZSTD_inBuffer in{packed.data(), packed.size(), 0};
  size_t left = 1;  // 0 at the end of a frame
  bool is_full = false;
  while (in.pos < in.size || (is_full && left != 0)) {
    ZSTD_outBuffer block{out.room(), kBlock, 0};
    left = ::ZSTD_decompressStream(context.get(), &block, &in);
    out.keep(block.pos);
    if (::ZSTD_isError(left) != 0) {
      out.fail("zstd", fmt::format("is damaged: {}", ::ZSTD_getErrorName(left)));
    }
    is_full = block.pos == kBlock;
  }
  if (left != 0) {
    out.fail("zstd", "ends early");
  }
  return std::move(out).take();
}

bool begins_with(std::string_view bytes, std::string_view magic) {
  return bytes.substr(0, magic.size()) == magic;
}

/// \throws DataError  for files that are known to be no text, and for zero bytes
void require_text(const std::filesystem::path& path, std::string_view bytes) {
  struct Known {
    std::string_view magic;
    const char* advice;
  };

  static const Known kinds[] = {
      {"PK\x03\x04", "a zip archive or a spreadsheet: unzip it, or export the sheet as CSV"},
      {"\xd0\xcf\x11\xe0", "a spreadsheet of an old office program: export the sheet as CSV"},
      {"PAR1", "a Parquet file: convert it to CSV (docs/data.md shows how)"},
      {"ARROW1", "an Arrow file: convert it to CSV (docs/data.md shows how)"},
      {kSqlite, "an SQLite database: set query = \"select * from …\""},
      {"\xff\xfe", "text in UTF-16: convert it with iconv -f UTF-16 -t UTF-8"},
      {"\xfe\xff", "text in UTF-16: convert it with iconv -f UTF-16 -t UTF-8"},
      {"BZh", "compressed by bzip2: unpack it; gzip and zstd are read as they are"},
      {"\xfd\x37zXZ", "compressed by xz: unpack it; gzip and zstd are read as they are"},
  };
  for (const Known& kind : kinds) {
    if (begins_with(bytes, kind.magic)) {
      throw DataError(fmt::format("{} is {}", path.string(), kind.advice));
    }
  }
  constexpr size_t kLooked = 1 << 16;
  const size_t zero = bytes.substr(0, kLooked).find('\0');
  if (zero != std::string_view::npos) {
    throw DataError(
        fmt::format("{}: the byte at offset {} is 0; this is not text", path.string(), zero));
  }
}

}  // namespace

TableText::TableText(const std::filesystem::path& path,
                     uint64_t most_unpacked,
                     const std::string& query)
    : mapped_(std::make_unique<MappedFile>(path)) {
  const std::string_view stored(static_cast<const char*>(mapped_->data()), mapped_->size());
  if (begins_with(stored, kSqlite) && !query.empty()) {
    take(read_sqlite(path, query, most_unpacked));
    return;
  }
  if (!query.empty()) {
    throw DataError(
        fmt::format("{}: query needs an SQLite database, which this file is not", path.string()));
  }
  if (begins_with(stored, "\x1f\x8b")) {
    unpacked_ = gunzipped(stored, Unpacked(path, most_unpacked));
    is_unpacked_ = true;
  } else if (begins_with(stored, "\x28\xb5\x2f\xfd")) {
    unpacked_ = unzstd(stored, Unpacked(path, most_unpacked));
    is_unpacked_ = true;
  }
  if (is_unpacked_) {
    mapped_.reset();
  }
  require_text(path, bytes());
  if (is_json_lines(bytes())) {
    take(read_json_lines(path.string(), bytes(), most_unpacked));
  }
}

void TableText::take(TextRows rows) {
  names_ = std::move(rows.names);
  unpacked_ = std::move(rows.rows);
  mapped_.reset();
}

std::string_view TableText::bytes() const {
  std::string_view bytes = unpacked_;
  if (mapped_) {
    bytes = {static_cast<const char*>(mapped_->data()), mapped_->size()};
  }
  return without_byte_order_mark(bytes);  // spreadsheets begin UTF-8 with it
}

}  // namespace rondo
