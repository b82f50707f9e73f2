#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "core/no_sigpipe.h"
#include "remote/remote_error.h"
#include "remote/transport.h"

namespace rondo {

namespace {

constexpr long kConnectSeconds = 30;
constexpr long kStallSeconds = 60;            // without a byte: the connection is dead
constexpr size_t kLongestAnswer = 64U << 20;  // of what no sink takes, such as a listing

/// One request under way.
struct Exchange {
  const HttpRequest& request;
  const BodySink& sink;
  const RetryPolicy& policy;
  HttpResponse response = {};
  size_t sent = 0;
  std::exception_ptr error = {};  // of a callback, which must not throw through C
};

/// Does what may throw; a failure ends the transfer.
template <class Work>
size_t guarded(Exchange& exchange, size_t done, const Work& work) {
  try {
    work();
    return done;
  } catch (...) {
    exchange.error = std::current_exception();
    return done + 1;  // any other number than `done` ends it
  }
}

size_t read_body(char* to, size_t size, size_t count, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  const std::string& body = exchange.request.body;
  const size_t bytes = std::min(size * count, body.size() - exchange.sent);
  std::memcpy(to, body.data() + exchange.sent, bytes);
  exchange.sent += bytes;
  return bytes;
}

/// Asked when a connection that was kept turns out to be closed.
int rewind_body(void* user, curl_off_t offset, int) {
  static_cast<Exchange*>(user)->sent = static_cast<size_t>(offset);
  return CURL_SEEKFUNC_OK;
}

size_t take_body(char* from, size_t size, size_t count, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  return guarded(exchange, size * count, [&] {
    HttpResponse& response = exchange.response;
    const bool is_good = response.status >= 200 && response.status < 300;
    if (exchange.sink && is_good) {
      exchange.sink(response, {from, size * count});
    } else if (response.body.size() + size * count <= kLongestAnswer) {
      response.body.append(from, size * count);
    } else {
      throw RemoteError("the server's answer is too long", false);
    }
  });
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) {
    text.remove_suffix(1);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) {
    text.remove_prefix(1);
  }
  return text;
}

size_t take_header(char* from, size_t size, size_t count, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  return guarded(exchange, size * count, [&] {
    const std::string_view line = trimmed({from, size * count});
    HttpResponse& response = exchange.response;
    if (line.rfind("HTTP/", 0) == 0) {  // of each answer on the way: 100, redirections
      response = {};
      const size_t space = line.find(' ');
      response.status =
          space == std::string_view::npos ? 0 : std::atoi(std::string(line.substr(space)).c_str());
    } else if (const size_t colon = line.find(':'); colon != std::string_view::npos) {
      std::string name(line.substr(0, colon));
      std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) {
        return static_cast<char>(std::tolower(c));
      });
      response.headers[name] = trimmed(line.substr(colon + 1));
    }
  });
}

int look_on(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<Exchange*>(user)->policy.is_over() ? 1 : 0;
}

/// The address without its query.
std::string shown(const std::string& url) {
  return url.substr(0, url.find('?'));
}

class CurlTransport final : public HttpTransport {
 public:
  CurlTransport(const RetryPolicy& policy, bool follows) : policy_(policy), follows_(follows) {
    static const CURLcode is_ready = curl_global_init(CURL_GLOBAL_DEFAULT);
    curl_.reset(is_ready == CURLE_OK ? curl_easy_init() : nullptr);
    if (curl_ == nullptr) {
      throw RemoteError("libcurl cannot be started", false);
    }
  }

  ~CurlTransport() override {
    const NoSigpipe no_signal;  // a goodbye to a connection that is closed
    curl_.reset();
  }

  HttpResponse send(const HttpRequest& request, const BodySink& sink) override {
    Exchange exchange{request, sink, policy_};
    curl_easy_reset(curl_.get());  // keeps the connections
    const Headers headers = headers_of(request);
    set_up(exchange, headers.get());
    std::string why(CURL_ERROR_SIZE, '\0');
    curl_easy_setopt(curl_.get(), CURLOPT_ERRORBUFFER, why.data());
    const CURLcode code = [&] {
      const NoSigpipe no_signal;  // CURLOPT_NOSIGNAL leaves it to the program
      return curl_easy_perform(curl_.get());
    }();
    curl_easy_setopt(curl_.get(), CURLOPT_ERRORBUFFER, nullptr);
    if (exchange.error) {
      std::rethrow_exception(exchange.error);
    }
    if (code == CURLE_ABORTED_BY_CALLBACK) {
      throw RemoteError(shown(request.url) + ": given up", false);
    }
    if (code != CURLE_OK) {
      why.resize(std::strlen(why.c_str()));
      throw RemoteError(fmt::format("{} {}: {}",
                                    request.method,
                                    shown(request.url),
                                    why.empty() ? curl_easy_strerror(code) : why.c_str()),
                        can_retry(code));
    }
    return std::move(exchange.response);
  }

 private:
  using Headers = std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)>;

  static bool can_retry(CURLcode code) {
    return code != CURLE_PEER_FAILED_VERIFICATION && code != CURLE_SSL_CACERT_BADFILE &&
           code != CURLE_UNSUPPORTED_PROTOCOL && code != CURLE_URL_MALFORMAT;
  }

  static Headers headers_of(const HttpRequest& request) {
    Headers headers(nullptr, &curl_slist_free_all);
    const auto add = [&headers](const std::string& line) {
      curl_slist* const longer = curl_slist_append(headers.get(), line.c_str());
      if (longer == nullptr) {
        throw std::bad_alloc();
      }
      headers.release();
      headers.reset(longer);
    };
    for (const auto& [name, value] : request.headers) {
      add(fmt::format("{}: {}", name, value));
    }
    add("expect:");  // no question before a body: it costs a second where nobody answers it
    return headers;
  }

  void set_up(Exchange& exchange, curl_slist* headers) const {
    CURL* const curl = curl_.get();
    const HttpRequest& request = exchange.request;
    curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
    curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);  // the path is signed as it is
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, follows_ ? 1L : 0L);
    curl_easy_setopt(curl, CURLOPT_MAXREDIRS, 5L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, kStallSeconds);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    if (const char* const ca = std::getenv("RONDO_CA_FILE"); ca != nullptr && *ca != '\0') {
      curl_easy_setopt(curl, CURLOPT_CAINFO, ca);
    }
    if (request.method == "HEAD") {
      curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
    } else if (request.method == "PUT" || request.method == "POST") {
      curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
      curl_easy_setopt(curl, CURLOPT_READFUNCTION, &read_body);
      curl_easy_setopt(curl, CURLOPT_READDATA, &exchange);
      curl_easy_setopt(curl, CURLOPT_SEEKFUNCTION, &rewind_body);
      curl_easy_setopt(curl, CURLOPT_SEEKDATA, &exchange);
      curl_easy_setopt(
          curl, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    }
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request.method.c_str());
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &take_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &exchange);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, &take_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, &exchange);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, &look_on);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &exchange);
  }

  RetryPolicy policy_;
  bool follows_;
  std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl_{nullptr, &curl_easy_cleanup};
};

}  // namespace

std::unique_ptr<HttpTransport> make_transport(const RetryPolicy& policy, bool follows) {
  return std::make_unique<CurlTransport>(policy, follows);
}

}  // namespace rondo
