#include "remote/internal/s3_store.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <map>

#include "core/error.h"
#include "remote/digests.h"
#include "remote/internal/resumed_download.h"
#include "remote/internal/s3_endpoint.h"
#include "remote/internal/s3_xml.h"
#include "remote/remote_error.h"
#include "remote/transport.h"

namespace rondo::detail {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kMostParts = 10'000;  // of one object, S3's limit
constexpr const char kHashHeader[] = "x-amz-meta-rondo-sha256";

struct S3Request {
  std::string method = "GET";
  std::string key = {};
  std::map<std::string, std::string> query = {};
  std::map<std::string, std::string> headers = {};
  std::string body = {};
};

/// Codes of answers with the status 4xx that pass.
bool passes(const HttpResponse& answer, const std::string& code) {
  return answer.status >= 500 || answer.status == 429 || answer.status == 408 ||
         code == "RequestTimeout" || code == "SlowDown" || code == "BadDigest" ||
         code == "XAmzContentSHA256Mismatch" || code == "InternalError";
}

/// What a user can do about it.
const char* advice_for(const std::string& code) {
  static const std::map<std::string, const char*> kAdvice = {
      {"NoSuchBucket", "; make the bucket, or correct its name"},
      {"AccessDenied", "; let this key list, read, write and delete objects of the bucket"},
      {"InvalidAccessKeyId", "; check AWS_ACCESS_KEY_ID or AWS_PROFILE"},
      {"SignatureDoesNotMatch", "; check AWS_SECRET_ACCESS_KEY"},
      {"ExpiredToken", "; renew the credentials (AWS_SESSION_TOKEN, or the shared file)"},
      {"RequestTimeTooSkewed", "; set this machine's clock"},
      {"PreconditionFailed", "; the object was replaced while it was read: read it again"},
      {"PermanentRedirect", "; the bucket is in another region: set AWS_REGION"},
      {"AuthorizationHeaderMalformed", "; the bucket is in another region: set AWS_REGION"},
  };
  const auto found = kAdvice.find(code);
  return found == kAdvice.end() ? "" : found->second;
}

std::string without(std::string text, const std::string& secret) {
  for (size_t at = text.find(secret); !secret.empty() && at != std::string::npos;
       at = text.find(secret, at)) {
    text.replace(at, secret.size(), "***");
  }
  return text;
}

/// Bytes of a file from `begin` on, fewer at its end.
std::string read_part(const fs::path& file, int64_t begin, int64_t size) {
  std::ifstream in(file, std::ios::binary);
  std::string bytes(static_cast<size_t>(size), '\0');
  in.seekg(begin);
  in.read(bytes.data(), size);
  if (in.gcount() != size) {
    throw IoError(fmt::format("read {} bytes of {} at {}", size, file.string(), begin), errno);
  }
  return bytes;
}

int64_t size_of(const fs::path& file) {
  std::error_code error;
  const auto size = fs::file_size(file, error);
  if (error) {
    throw IoError("ask for the size of " + file.string(), error.value());
  }
  return static_cast<int64_t>(size);
}

class S3Store final : public RemoteStore {
 public:
  S3Store(const RemoteAddress& address, RemoteSettings settings)
      : address_(address),
        settings_(std::move(settings)),
        endpoint_(find_s3_endpoint(address, settings_.environment)),
        prefix_(address.path),
        transport_(make_transport(settings_.retry, /*follows=*/false)) {
    if (!prefix_.empty() && prefix_.back() != '/') {
      prefix_ += '/';
    }
  }

  void upload(const fs::path& file, const std::string& name) override {
    const int64_t size = size_of(file);
    const auto part_size = static_cast<int64_t>(settings_.part_size);
    const std::string hash = sha256_hex_of_file(file);
    const std::map<std::string, std::string> headers{{kHashHeader, hash}};
    if (size <= part_size) {
      ask({"PUT", prefix_ + name, {}, headers, read_part(file, 0, size)});
    } else {
      upload_parts(file, name, headers, std::max(part_size, size / kMostParts + 1));
    }
    check_object(name, size, hash);
  }

  void put(const std::string& name, std::string_view bytes) override {
    ask({"PUT", prefix_ + name, {}, {{kHashHeader, sha256_hex(bytes)}}, std::string(bytes)});
  }

  std::optional<std::string> read(const std::string& name) override {
    const HttpResponse answer = ask({"GET", prefix_ + name}, /*may_miss=*/true);
    return answer.status == kNotFound ? std::nullopt : std::optional<std::string>(answer.body);
  }

  bool download(const std::string& name, const fs::path& file) override {
    return resumed_download(address_of(name),
                            file,
                            settings_.retry,
                            kHashHeader,
                            settings_.on_download,
                            [&](const RangeRequest& range, const BodySink& sink) {
                              return send({"GET", prefix_ + name, {}, range.headers()}, true, sink);
                            });
  }

  std::string version(const std::string& name) override {
    const HttpResponse answer = ask({"HEAD", prefix_ + name}, /*may_miss=*/true);
    return answer.status == kNotFound ? "" : answer.version();
  }

  std::vector<std::string> list() override {
    std::vector<std::string> names;
    std::map<std::string, std::string> query{{"list-type", "2"}, {"prefix", prefix_}};
    for (bool is_cut = true; is_cut;) {
      const HttpResponse answer = ask({"GET", "", query});
      for (const std::string& key : texts_of(answer.body, "Key")) {
        if (key.size() > prefix_.size() && key.compare(0, prefix_.size(), prefix_) == 0) {
          names.push_back(key.substr(prefix_.size()));
        }
      }
      const std::string token = text_of(answer.body, "NextContinuationToken");
      is_cut = text_of(answer.body, "IsTruncated") == "true" && !token.empty();
      query["continuation-token"] = token;
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  void remove(const std::string& name) override { ask({"DELETE", prefix_ + name}, true); }

  void check_access() override {
    ask({"GET", "", {{"list-type", "2"}, {"prefix", prefix_}, {"max-keys", "1"}}});
    constexpr const char* kProbe = ".rondo_access_check";
    put(kProbe, "");
    remove(kProbe);
  }

  std::string address_of(const std::string& name) const override {
    return fmt::format("{}://{}/{}{}", address_.scheme, address_.authority, prefix_, name);
  }

 private:
  /// Sends a request until it succeeds.
  HttpResponse ask(const S3Request& request, bool may_miss = false) {
    HttpResponse answer;
    with_retries(settings_.retry, [&] { answer = send(request, may_miss); });
    return answer;
  }

  /// Sends a request once.
  /// \param may_miss  a 404 about the object is an answer, not an error
  HttpResponse send(const S3Request& request, bool may_miss, const BodySink& sink = {}) {
    const Credentials credentials = find_s3_credentials(address_, settings_.environment);
    const HttpResponse answer = transport_->send(signed_request(request, credentials), sink);
    const std::string code = text_of(answer.body, "Code");
    const bool is_done = answer.status >= 200 && answer.status < 300;
    const bool is_error_in_200 = is_done && answer.body.find("<Error>") != std::string::npos;
    const bool is_missing = answer.status == kNotFound && code != "NoSuchBucket";
    if ((is_done && !is_error_in_200) || (may_miss && is_missing)) {
      return answer;
    }
    std::string text = fmt::format("{} {}: the server answers {} {} {}",
                                   request.method,
                                   shown(request.key),
                                   answer.status,
                                   code,
                                   text_of(answer.body, "Message"));
    text = without(without(text, credentials.secret_key), credentials.session_token);
    throw RemoteError(text + advice_for(code), passes(answer, code) || is_error_in_200);
  }

  std::string shown(const std::string& key) const {
    return fmt::format("{}://{}/{}", address_.scheme, address_.authority, key);
  }

  HttpRequest signed_request(const S3Request& request, const Credentials& credentials) const {
    SignedRequest to_sign{request.method,
                          uri_encoded(endpoint_.base + request.key, /*keeps_slashes=*/true),
                          request.query,
                          request.headers,
                          sha256_hex(request.body)};
    const SignatureScope scope{fmt::format("{:%Y%m%dT%H%M%SZ}", fmt::gmtime(now())),
                               endpoint_.region};
    to_sign.headers["host"] = endpoint_.host;
    to_sign.headers["x-amz-content-sha256"] = to_sign.payload_hash;
    to_sign.headers["x-amz-date"] = scope.time;
    if (!credentials.session_token.empty()) {
      to_sign.headers["x-amz-security-token"] = credentials.session_token;
    }
    HttpRequest result{
        request.method, endpoint_.origin + to_sign.path, to_sign.headers, request.body};
    if (!request.query.empty()) {
      result.url += "?" + query_text(request.query);
    }
    result.headers["authorization"] = authorization_v4(to_sign, scope, credentials);
    return result;
  }

  std::time_t now() const { return std::chrono::system_clock::to_time_t(settings_.now()); }

  /// The object appears when its last part is confirmed; an upload that fails is taken back.
  void upload_parts(const fs::path& file,
                    const std::string& name,
                    const std::map<std::string, std::string>& headers,
                    int64_t part_size) {
    const std::string key = prefix_ + name;
    const std::string id = text_of(ask({"POST", key, {{"uploads", ""}}, headers}).body, "UploadId");
    try {
      const std::string parts = send_parts(file, key, id, part_size);
      // Done already when the answer to an earlier try was lost; `check_object` says whether it is.
      ask({"POST", key, {{"uploadId", id}}, {}, parts}, /*may_miss=*/true);
    } catch (...) {
      abandon(key, id);
      throw;
    }
  }

  /// \return the list of parts that completes the upload
  std::string send_parts(const fs::path& file,
                         const std::string& key,
                         const std::string& id,
                         int64_t part_size) {
    const int64_t size = size_of(file);
    std::string parts;
    for (int64_t begin = 0, number = 1; begin < size; begin += part_size, ++number) {
      const HttpResponse answer = ask({"PUT",
                                       key,
                                       {{"partNumber", std::to_string(number)}, {"uploadId", id}},
                                       {},
                                       read_part(file, begin, std::min(part_size, size - begin))});
      parts += fmt::format(
          "<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", number, answer.header("etag"));
    }
    return fmt::format("<CompleteMultipartUpload>{}</CompleteMultipartUpload>", parts);
  }

  /// Its parts would cost their owner room. Over a connection of its own, which is there although
  /// the upload was given up.
  void abandon(const std::string& key, const std::string& id) noexcept {
    try {
      transport_ = make_transport(RetryPolicy(), /*follows=*/false);
      send({"DELETE", key, {{"uploadId", id}}}, true);
      transport_ = make_transport(settings_.retry, /*follows=*/false);
    } catch (...) {  // the bucket's lifecycle rule takes it; what failed before counts
    }
  }

  /// Asks whether the object is what was sent.
  void check_object(const std::string& name, int64_t size, const std::string& hash) {
    const HttpResponse answer = ask({"HEAD", prefix_ + name});
    const std::string its_size = answer.header("content-length");
    const std::string its_hash = answer.header(kHashHeader);  // not every server keeps it
    if (its_size != std::to_string(size) || (!its_hash.empty() && its_hash != hash)) {
      throw RemoteError(
          fmt::format("{} is not what was uploaded: {} bytes instead of {}, SHA-256 {} "
                      "instead of {}",
                      address_of(name),
                      its_size,
                      size,
                      its_hash,
                      hash),
          false);
    }
  }

  RemoteAddress address_;
  RemoteSettings settings_;
  S3Endpoint endpoint_;
  std::string prefix_;
  std::unique_ptr<HttpTransport> transport_;
};

}  // namespace

std::unique_ptr<RemoteStore> make_s3_store(const RemoteAddress& address, RemoteSettings settings) {
  return std::make_unique<S3Store>(address, std::move(settings));
}

}  // namespace rondo::detail
