#include "remote/internal/resumed_download.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/file_system.h"
#include "remote/digests.h"
#include "remote/remote_error.h"

namespace rondo::detail {

namespace {

constexpr int kNotFound = 404;
constexpr int kPart = 206;

/// Takes the bytes of several answers as those of one.
class Assembly {
 public:
  Assembly(WritableFile& out, bool hashes) : out_(out) {
    if (hashes) {
      hash_.emplace();
    }
  }

  /// Before each answer.
  void begin() { position_ = -1; }

  void take(const HttpResponse& head, std::string_view bytes) {
    if (position_ < 0) {
      position_ = head.status == kPart ? size_ : 0;
      etag_ = head.header("etag");
    }
    const auto known = std::min<int64_t>(size_ - position_, static_cast<int64_t>(bytes.size()));
    position_ += static_cast<int64_t>(bytes.size());
    bytes.remove_prefix(static_cast<size_t>(known));  // of a server that sends all of it again
    out_.append(bytes.data(), bytes.size());
    if (hash_) {
      hash_->update(bytes);
    }
    size_ += static_cast<int64_t>(bytes.size());
  }

  RangeRequest rest() const { return {size_, etag_}; }

  std::string hash() { return to_hex(hash_->finish()); }

 private:
  WritableFile& out_;
  std::optional<Sha256> hash_;
  std::string etag_;
  int64_t size_ = 0;
  int64_t position_ = -1;  // in the object, of the next byte of this answer
};

struct NotThere {};

void assemble(WritableFile& out,
              const std::string& what,
              const RetryPolicy& retry,
              const std::string& hash_header,
              const GetRange& get) {
  Assembly assembly(out, !hash_header.empty());
  HttpResponse last;
  try {
    with_retries(retry, [&] {
      assembly.begin();
      last = get(assembly.rest(), [&](const HttpResponse& head, std::string_view bytes) {
        assembly.take(head, bytes);
      });
    });
  } catch (const RemoteError& error) {
    throw RemoteError(error.what(), false);  // tried often enough: a new file would not help
  }
  if (last.status == kNotFound) {
    throw NotThere();
  }
  const std::string wanted = hash_header.empty() ? "" : last.header(hash_header);
  if (!wanted.empty() && wanted != assembly.hash()) {
    throw RemoteError(
        fmt::format("{}: what came has another checksum than what was uploaded", what), true);
  }
}

}  // namespace

std::map<std::string, std::string> RangeRequest::headers() const {
  if (begin == 0) {
    return {};
  }
  std::map<std::string, std::string> headers{{"range", fmt::format("bytes={}-", begin)}};
  if (!etag.empty()) {
    headers["if-match"] = etag;
  }
  return headers;
}

bool resumed_download(const std::string& what,
                      const std::filesystem::path& file,
                      const RetryPolicy& retry,
                      const std::string& hash_header,
                      const GetRange& get) {
  const auto files = real_file_system();
  files->create_directories(std::filesystem::absolute(file).parent_path());
  try {
    with_retries(retry, [&] {
      write_atomically(
          *files, file, [&](WritableFile& out) { assemble(out, what, retry, hash_header, get); });
    });
  } catch (const NotThere&) {
    return false;
  }
  return true;
}

}  // namespace rondo::detail
