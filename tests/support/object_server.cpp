#include "support/object_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "core/file_descriptor.h"
#include "remote/digests.h"
#include "remote/internal/s3_xml.h"
#include "remote/signature_v4.h"

namespace rondo::test {

namespace {

constexpr const char kSecret[] = "the/secret+of=this-test";

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  return text;
}

std::string url_decoded(const std::string& text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      result += static_cast<char>(std::strtol(text.substr(i + 1, 2).c_str(), nullptr, 16));
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

std::map<std::string, std::string> query_of(const std::string& text) {
  std::map<std::string, std::string> query;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('&', begin), text.size());
    const std::string pair = text.substr(begin, end - begin);
    const size_t equals = std::min(pair.find('='), pair.size());
    query[url_decoded(pair.substr(0, equals))] =
        equals < pair.size() ? url_decoded(pair.substr(equals + 1)) : "";
    begin = end + 1;
  }
  return query;
}

/// The value of "name=value" in an authorization header.
std::string field_of(const std::string& authorization, const std::string& name) {
  const size_t at = authorization.find(name + "=");
  if (at == std::string::npos) {
    return "";
  }
  const size_t begin = at + name.size() + 1;
  return authorization.substr(begin, authorization.find(',', begin) - begin);
}

}  // namespace

struct ObjectServer::Request {
  std::string method;
  std::string path;  // as it was sent
  std::string key;
  std::map<std::string, std::string> query;
  std::map<std::string, std::string> headers;
  std::string body;

  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }

  bool has(const std::string& name) const { return query.count(name) > 0; }
};

struct ObjectServer::Answer {
  int status = 200;
  std::string body;
  std::map<std::string, std::string> headers;

  static Answer error(int status, const std::string& code) {
    return {
        status,
        fmt::format("<Error><Code>{}</Code><Message>{} &amp; so on</Message></Error>", code, code),
        {}};
  }
};

ObjectServer::ObjectServer(std::string bucket)
    : bucket_(std::move(bucket)), credentials_{"TESTKEY", kSecret, "a-token-for-the-session"} {
  ::setenv("no_proxy", "127.0.0.1", /*overwrite=*/1);
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (listener_ < 0 || ::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(listener_, 16) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("no port at 127.0.0.1");
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { serve(); });
}

ObjectServer::~ObjectServer() {
  ends_ = true;
  ::shutdown(listener_, SHUT_RDWR);  // wakes accept
  thread_.join();
  ::close(listener_);
}

std::string ObjectServer::url() const {
  return fmt::format("http://127.0.0.1:{}", port_);
}

std::map<std::string, std::string> ObjectServer::environment() const {
  return {{"AWS_ENDPOINT_URL", url()},
          {"AWS_REGION", "test-1"},
          {"AWS_ACCESS_KEY_ID", credentials_.access_key},
          {"AWS_SECRET_ACCESS_KEY", credentials_.secret_key},
          {"AWS_SESSION_TOKEN", credentials_.session_token}};
}

RemoteSettings ObjectServer::settings() const {
  RemoteSettings settings;
  settings.retry.wait = [](double) {};
  settings.environment = [values = environment()](const char* name) {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional<std::string>(found->second);
  };
  return settings;
}

void ObjectServer::add_fault(const ServerFault& fault) {
  const std::lock_guard<std::mutex> lock(mutex_);
  faults_.push_back(fault);
}

std::map<std::string, std::string> ObjectServer::objects() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::map<std::string, std::string> result;
  for (const auto& [key, object] : objects_) {
    result[key] = object.bytes;
  }
  return result;
}

void ObjectServer::set_object(const std::string& key, const std::string& bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  objects_[key] = {bytes, {}};
}

std::vector<std::string> ObjectServer::requests() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return requests_;
}

size_t ObjectServer::open_uploads() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return uploads_.size();
}

void ObjectServer::serve() {
  while (!ends_) {
    const detail::FileDescriptor connection(::accept(listener_, nullptr, nullptr));
    if (connection.get() >= 0 && !ends_) {
      talk(connection.get());
    }
  }
}

/// One request and its answer; then the connection ends.
void ObjectServer::talk(int connection) {
  std::string bytes;
  char block[1 << 16];
  size_t head_end = std::string::npos;
  size_t wanted = std::string::npos;
  Request request;
  while (bytes.size() < wanted) {
    const ssize_t got = ::recv(connection, block, sizeof block, 0);
    if (got <= 0) {
      return;
    }
    bytes.append(block, static_cast<size_t>(got));
    if (head_end == std::string::npos) {
      head_end = bytes.find("\r\n\r\n");
      if (head_end == std::string::npos) {
        continue;
      }
      const std::string first = bytes.substr(0, bytes.find("\r\n"));
      request.method = first.substr(0, first.find(' '));
      const std::string target =
          first.substr(request.method.size() + 1, first.rfind(' ') - request.method.size() - 1);
      request.path = target.substr(0, target.find('?'));
      request.query = query_of(
          target.find('?') == std::string::npos ? "" : target.substr(target.find('?') + 1));
      for (size_t at = first.size() + 2; at < head_end;) {
        const size_t end = bytes.find("\r\n", at);
        const std::string line = bytes.substr(at, end - at);
        const size_t colon = line.find(':');
        const size_t value = line.find_first_not_of(' ', colon + 1);
        request.headers[lower(line.substr(0, colon))] =
            value == std::string::npos ? "" : line.substr(value);
        at = end + 2;
      }
      const std::string length = request.header("content-length");
      wanted = head_end + 4 + (length.empty() ? 0 : std::stoul(length));
    }
  }
  request.body = bytes.substr(head_end + 4);
  const std::string folder = "/" + bucket_ + "/";
  const std::string path = url_decoded(request.path);
  const bool is_here = path.rfind(folder, 0) == 0;
  request.key = is_here ? path.substr(folder.size()) : "";

  const std::lock_guard<std::mutex> lock(mutex_);
  requests_.push_back(request.method + " " + path);
  const ServerFault* const fault = fault_of(request);
  const auto is = [fault](ServerFault::Kind kind) {
    return fault != nullptr && fault->kind == kind;
  };
  if (is(ServerFault::DropBefore)) {
    return;
  }
  Answer result = is(ServerFault::Error500)       ? Answer::error(500, "InternalError")
                  : is(ServerFault::ExpiredToken) ? Answer::error(400, "ExpiredToken")
                  : is_here                       ? answer(request)
                                                  : Answer::error(404, "NoSuchBucket");
  if (is(ServerFault::DropAfter)) {
    return;
  }
  if (is(ServerFault::WrongChecksum) && !result.body.empty()) {
    result.body[result.body.size() / 2] ^= 1;
  }
  std::string text = fmt::format("HTTP/1.1 {} -\r\nconnection: close\r\n", result.status);
  if (result.headers.count("content-length") == 0) {
    result.headers["content-length"] = std::to_string(result.body.size());
  }
  for (const auto& [name, value] : result.headers) {
    text += fmt::format("{}: {}\r\n", name, value);
  }
  text += "\r\n";
  if (request.method != "HEAD") {
    text +=
        is(ServerFault::DropInAnswer) ? result.body.substr(0, result.body.size() / 2) : result.body;
  }
  const size_t piece = is(ServerFault::SlowRead) ? 1 : text.size();
  for (size_t at = 0; at < text.size();) {
    const ssize_t sent =
        ::send(connection, text.data() + at, std::min(piece, text.size() - at), MSG_NOSIGNAL);
    if (sent <= 0) {
      return;
    }
    at += static_cast<size_t>(sent);
  }
}

const ServerFault* ObjectServer::fault_of(const Request& request) {
  const auto found = std::find_if(faults_.begin(), faults_.end(), [&](const ServerFault& fault) {
    return fault.method == request.method;
  });
  if (found == faults_.end()) {
    return nullptr;
  }
  current_ = *found;
  if (--found->times == 0) {
    faults_.erase(found);
  }
  return &current_;
}

ObjectServer::Answer ObjectServer::answer(const Request& request) {
  const bool needs_none =
      is_public && (request.method == "GET" || request.method == "HEAD") && !request.key.empty();
  const std::string code = needs_none ? "" : refusal(request);
  return code.empty() ? act(request) : Answer::error(403, code);
}

/// What is wrong with a request's signature.
std::string ObjectServer::refusal(const Request& request) const {
  const std::string authorization = request.header("authorization");
  const std::string credential = field_of(authorization, "Credential");
  if (credential.substr(0, credential.find('/')) != credentials_.access_key) {
    return "InvalidAccessKeyId";
  }
  if (request.header("x-amz-security-token") != credentials_.session_token) {
    return "InvalidToken";
  }
  if (request.header("x-amz-content-sha256") != sha256_hex(request.body)) {
    return "XAmzContentSHA256Mismatch";
  }
  SignedRequest of_client{
      request.method, request.path, request.query, {}, request.header("x-amz-content-sha256")};
  const std::string names = field_of(authorization, "SignedHeaders") + ";";
  for (size_t begin = 0; begin < names.size(); begin = names.find(';', begin) + 1) {
    const std::string name = names.substr(begin, names.find(';', begin) - begin);
    of_client.headers[name] = request.header(name);
  }
  const SignatureScope scope{request.header("x-amz-date"), "test-1"};
  const std::string expected = signature_v4(of_client, scope, credentials_.secret_key);
  return expected == field_of(authorization, "Signature") ? "" : "SignatureDoesNotMatch";
}

ObjectServer::Answer ObjectServer::act(const Request& request) {
  if (request.method == "GET" && request.key.empty()) {
    return list(request);
  }
  if (request.method == "GET" || request.method == "HEAD") {
    return get(request);
  }
  if (request.method == "PUT") {
    return put(request);
  }
  return request.method == "POST" ? post(request) : remove(request);
}

ObjectServer::Answer ObjectServer::get(const Request& request) const {
  const auto found = objects_.find(request.key);
  if (found == objects_.end()) {
    return Answer::error(404, "NoSuchKey");
  }
  const std::string& bytes = found->second.bytes;
  Answer answer{200, bytes, found->second.headers};
  const std::string etag = "\"" + sha256_hex(bytes).substr(0, 32) + "\"";
  answer.headers["etag"] = etag;
  const std::string wanted = request.header("if-match");
  if (!wanted.empty() && wanted != etag) {
    return Answer::error(412, "PreconditionFailed");
  }
  if (const std::string range = request.header("range"); !range.empty()) {
    const size_t begin = std::stoul(range.substr(range.find('=') + 1));
    answer.status = 206;
    answer.body = bytes.substr(begin);
    answer.headers["content-range"] =
        fmt::format("bytes {}-{}/{}", begin, bytes.size() - 1, bytes.size());
  }
  answer.headers["content-length"] = std::to_string(answer.body.size());
  return answer;
}

ObjectServer::Answer ObjectServer::list(const Request& request) const {
  const auto value = [&](const char* name) {
    return request.has(name) ? request.query.at(name) : std::string();
  };
  const std::string after = value("continuation-token");
  std::string keys;
  std::string last;
  int64_t count = 0;
  for (const auto& [key, object] : objects_) {
    if (key.rfind(value("prefix"), 0) != 0 || (!after.empty() && key <= after)) {
      continue;
    }
    if (count == page_size) {
      keys += fmt::format(
          "<IsTruncated>true</IsTruncated><NextContinuationToken>{}</"
          "NextContinuationToken>",
          last);
      break;
    }
    std::string escaped;
    for (const char c : key) {
      escaped += c == '&' ? "&amp;" : std::string(1, c);
    }
    keys += fmt::format("<Contents><Key>{}</Key></Contents>", escaped);
    last = key;
    ++count;
  }
  return {200, "<ListBucketResult>" + keys + "</ListBucketResult>", {}};
}

ObjectServer::Answer ObjectServer::put(const Request& request) {
  if (request.has("uploadId")) {
    const auto upload = uploads_.find(request.query.at("uploadId"));
    if (upload == uploads_.end()) {
      return Answer::error(404, "NoSuchUpload");
    }
    const int number = std::stoi(request.query.at("partNumber"));
    upload->second[number] = request.body;
    return {200, "", {{"etag", fmt::format("\"part{}\"", number)}}};
  }
  Object object{request.body, {}};
  for (const auto& [name, value] : request.headers) {
    if (name.rfind("x-amz-meta-", 0) == 0) {
      object.headers[name] = value;
    }
  }
  objects_[request.key] = object;
  return {};
}

ObjectServer::Answer ObjectServer::post(const Request& request) {
  if (request.has("uploads")) {
    const std::string id = fmt::format("upload{}", next_upload_++);
    uploads_[id] = {};
    for (const auto& [name, value] : request.headers) {
      if (name.rfind("x-amz-meta-", 0) == 0) {
        upload_headers_[id][name] = value;
      }
    }
    return {200, fmt::format("<R><UploadId>{}</UploadId></R>", id), {}};
  }
  const auto upload = uploads_.find(request.query.at("uploadId"));
  if (upload == uploads_.end()) {
    return Answer::error(404, "NoSuchUpload");
  }
  Object object{"", upload_headers_[upload->first]};
  for (const std::string& number : detail::texts_of(request.body, "PartNumber")) {
    object.bytes += upload->second.at(std::stoi(number));
  }
  objects_[request.key] = object;
  uploads_.erase(upload);
  return {200, "<CompleteMultipartUploadResult></CompleteMultipartUploadResult>", {}};
}

ObjectServer::Answer ObjectServer::remove(const Request& request) {
  if (request.has("uploadId")) {
    uploads_.erase(request.query.at("uploadId"));
  } else {
    objects_.erase(request.key);
  }
  return {204, "", {}};
}

}  // namespace rondo::test
