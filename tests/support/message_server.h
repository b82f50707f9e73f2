#pragma once

#include <atomic>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace rondo::test {

/// A server at 127.0.0.1 that keeps what is handed in: bodies of HTTP requests, or mails by SMTP.
class MessageServer {
 public:
  enum Protocol { Http, Smtp };

  /// \param statuses  of the first answers over HTTP; later ones are 200
  explicit MessageServer(Protocol protocol, std::deque<int> statuses = {});
  MessageServer(const MessageServer&) = delete;
  MessageServer& operator=(const MessageServer&) = delete;
  ~MessageServer();

  int port() const { return port_; }

  std::vector<std::string> received() const;

 private:
  void serve();
  void talk_http(int connection);
  void talk_smtp(int connection);
  void keep(std::string message);

  Protocol protocol_;
  mutable std::mutex mutex_;
  std::deque<int> statuses_;
  std::vector<std::string> received_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace rondo::test
