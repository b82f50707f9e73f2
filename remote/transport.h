#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "remote/retry.h"

namespace rondo {

struct HttpRequest {
  std::string method = "GET";
  std::string url;
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string body;
};

struct HttpResponse {
  int status = 0;
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string body;                            ///< what no sink took

  /// "" when there is none.
  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? std::string() : found->second;
  }

  /// What the object is told by from another one of its name: the ETag, else size and time of the
  /// last change; "" when the server says neither.
  std::string version() const {
    const std::string etag = header("etag");
    const std::string changed = header("last-modified");
    if (!etag.empty() || changed.empty()) {
      return etag;
    }
    return header("content-length") + " bytes of " + changed;
  }
};

/// Gets the body of a response with a status from 200 to 299 in pieces, and the response so far.
using BodySink = std::function<void(const HttpResponse& head, std::string_view bytes)>;

/// Sends requests, one at a time. For one thread.
class HttpTransport {
 public:
  virtual ~HttpTransport() = default;

  /// \return the server's answer, whatever its status
  /// \throws RemoteError  that can be tried again when the connection fails or the answer is cut;
  ///                      what the sink throws is thrown on
  virtual HttpResponse send(const HttpRequest& request, const BodySink& sink = {}) = 0;
};

/// Over libcurl. A certificate of one's own is in the file that RONDO_CA_FILE names.
/// \param follows  redirections are followed; for requests without credentials only
/// \throws NotSupportedError  in a build without libcurl, naming package and option
std::unique_ptr<HttpTransport> make_transport(const RetryPolicy& policy, bool follows);

}  // namespace rondo
