#include "remote/internal/resumed_download.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>
#include <utility>

#include "core/file_system.h"
#include "remote/digests.h"
#include "remote/remote_error.h"

namespace rondo::detail {

namespace {

constexpr int kPart = 206;

std::optional<int64_t> number_in(const std::string& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = error == std::errc() && end == text.data() + text.size() && number >= 0;
  return is_whole ? std::optional(number) : std::nullopt;
}

/// Takes the bytes of several answers as those of one.
class Assembly {
 public:
  Assembly(WritableFile& out,
           bool hashes,
           std::function<void(int64_t, std::optional<int64_t>)> tell)
      : out_(out), tell_(std::move(tell)) {
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
      if (const std::optional<int64_t> more = number_in(head.header("content-length"))) {
        whole_ = position_ + *more;
      }
    }
    const auto known = std::min<int64_t>(size_ - position_, static_cast<int64_t>(bytes.size()));
    position_ += static_cast<int64_t>(bytes.size());
    bytes.remove_prefix(static_cast<size_t>(known));  // of a server that sends all of it again
    out_.append(bytes.data(), bytes.size());
    if (hash_) {
      hash_->update(bytes);
    }
    size_ += static_cast<int64_t>(bytes.size());
    tell_(size_, whole_);
  }

  RangeRequest rest() const { return {size_, etag_}; }

  std::string hash() { return to_hex(hash_->finish()); }

 private:
  WritableFile& out_;
  std::function<void(int64_t, std::optional<int64_t>)> tell_;
  std::optional<Sha256> hash_;
  std::string etag_;
  int64_t size_ = 0;
  std::optional<int64_t> whole_;  // bytes of the object
  int64_t position_ = -1;         // in the object, of the next byte of this answer
};

struct NotThere {};

void assemble(WritableFile& out,
              const std::string& what,
              const RetryPolicy& retry,
              const std::string& hash_header,
              const DownloadProgress& progress,
              const GetRange& get) {
  Assembly assembly(out, !hash_header.empty(), [&](int64_t bytes, std::optional<int64_t> whole) {
    if (progress) {
      progress(what, bytes, whole);
    }
  });
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
                      const DownloadProgress& progress,
                      const GetRange& get) {
  const auto files = real_file_system();
  files->create_directories(std::filesystem::absolute(file).parent_path());
  try {
    with_retries(retry, [&] {
      write_atomically(*files, file, [&](WritableFile& out) {
        assemble(out, what, retry, hash_header, progress, get);
      });
    });
  } catch (const NotThere&) {
    return false;
  }
  return true;
}

}  // namespace rondo::detail
