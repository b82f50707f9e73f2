#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "remote/remote_store.h"
#include "remote/retry.h"
#include "remote/transport.h"

namespace rondo::detail {

constexpr int kNotFound = 404;  ///< the status of what is not there

/// What a request for a part of an object asks.
struct RangeRequest {
  int64_t begin = 0;  ///< the first byte wanted
  std::string etag;   ///< of the object that the earlier bytes are from; "" at the beginning

  /// The headers "range" and "if-match", where the request is not for all of it.
  std::map<std::string, std::string> headers() const;
};

/// Sends one; answers of another status than 200, 206 and kNotFound it throws.
using GetRange = std::function<HttpResponse(const RangeRequest& range, const BodySink& sink)>;

/// Writes an object into a file. Goes on where the connection broke. The file is there when all
/// bytes came and have the SHA-256 that the header `hash_header` gives, if there is one.
/// \return false when the server has no such object
bool resumed_download(const std::string& what,
                      const std::filesystem::path& file,
                      const RetryPolicy& retry,
                      const std::string& hash_header,
                      const DownloadProgress& progress,
                      const GetRange& get);

}  // namespace rondo::detail
