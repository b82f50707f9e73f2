#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "remote/credentials.h"
#include "remote/remote_store.h"

namespace rondo::test {

/// What goes wrong with a request. Requests of another method pass.
struct ServerFault {
  enum Kind {
    DropBefore,     ///< the connection ends without an answer, nothing is done
    DropAfter,      ///< it is done, and the connection ends without an answer
    DropInAnswer,   ///< half of the answer's body comes
    Error500,       ///< the server has an internal error
    SlowRead,       ///< the answer comes in single bytes
    WrongChecksum,  ///< a byte of the answer's body is another one
    ExpiredToken,   ///< the credentials are no longer good
  };

  Kind kind;
  std::string method;  ///< such as "GET"
  int times = 1;
};

/// An object store at 127.0.0.1 with S3's protocol: one bucket, path-style addresses, parts, lists
/// and ranges. It refuses requests whose signature or checksum is wrong. Not a server for anything
/// else.
class ObjectServer {
 public:
  explicit ObjectServer(std::string bucket = "bucket");
  ObjectServer(const ObjectServer&) = delete;
  ObjectServer& operator=(const ObjectServer&) = delete;
  ~ObjectServer();

  /// "http://127.0.0.1:port"
  std::string url() const;

  /// What a store needs to reach it, with back-off that takes no time.
  RemoteSettings settings() const;

  /// The environment of those settings, to be changed.
  std::map<std::string, std::string> environment() const;

  void add_fault(const ServerFault& fault);

  /// The content of its objects by key.
  std::map<std::string, std::string> objects() const;
  void set_object(const std::string& key, const std::string& bytes);

  /// "PUT /bucket/key" and so on, in order, also of those that failed.
  std::vector<std::string> requests() const;

  /// Uploads in parts that were neither completed nor taken back.
  size_t open_uploads() const;

  int64_t page_size = 1000;            ///< names in an answer to a list
  std::atomic<bool> is_public{false};  ///< objects are read without a signature

 private:
  struct Request;
  struct Answer;

  struct Object {
    std::string bytes;
    std::map<std::string, std::string> headers;
  };

  void serve();
  void talk(int connection);
  Answer answer(const Request& request);
  Answer act(const Request& request);
  Answer get(const Request& request) const;
  Answer list(const Request& request) const;
  Answer put(const Request& request);
  Answer post(const Request& request);
  Answer remove(const Request& request);
  std::string refusal(const Request& request) const;
  const ServerFault* fault_of(const Request& request);

  mutable std::mutex mutex_;
  std::string bucket_;
  Credentials credentials_;
  std::map<std::string, Object> objects_;
  std::map<std::string, std::map<int, std::string>> uploads_;
  std::map<std::string, std::map<std::string, std::string>> upload_headers_;
  std::deque<ServerFault> faults_;
  ServerFault current_{};
  std::vector<std::string> requests_;
  int listener_ = -1;
  int port_ = 0;
  int next_upload_ = 1;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

}  // namespace rondo::test
