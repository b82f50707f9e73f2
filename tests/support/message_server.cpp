#include "support/message_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <stdexcept>

namespace rondo::test {

namespace {

/// Reads more into `text`. \return false at the end of the connection
bool read_more(int connection, std::string& text) {
  std::array<char, 4096> bytes{};
  const ssize_t size = ::recv(connection, bytes.data(), bytes.size(), 0);
  text.append(bytes.data(), static_cast<size_t>(std::max<ssize_t>(size, 0)));
  return size > 0;
}

void say(int connection, const std::string& text) {
  static_cast<void>(!::send(connection, text.data(), text.size(), MSG_NOSIGNAL));
}

/// The number behind "content-length:" in a head.
size_t length_of(std::string head) {
  std::transform(head.begin(), head.end(), head.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  constexpr const char* kName = "content-length:";
  const size_t at = head.find(kName);
  return at == std::string::npos ? 0 : std::strtoul(head.c_str() + at + 15, nullptr, 10);
}

/// Up to the separator, which is taken as well. \return false at the end of the connection
bool read_until(int connection,
                const std::string& separator,
                std::string& text,
                std::string& found) {
  while (text.find(separator) == std::string::npos) {
    if (!read_more(connection, text)) {
      return false;
    }
  }
  const size_t end = text.find(separator);
  found = text.substr(0, end);
  text.erase(0, end + separator.size());
  return true;
}

}  // namespace

MessageServer::MessageServer(Protocol protocol, std::deque<int> statuses)
    : protocol_(protocol), statuses_(std::move(statuses)) {
  ::setenv("no_proxy", "127.0.0.1", /*overwrite=*/1);
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (listener_ < 0 || ::bind(listener_, any, size) != 0 || ::listen(listener_, 16) != 0 ||
      ::getsockname(listener_, any, &size) != 0) {
    throw std::runtime_error("no port at 127.0.0.1");
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { serve(); });
}

MessageServer::~MessageServer() {
  ends_ = true;
  ::shutdown(listener_, SHUT_RDWR);
  thread_.join();
  ::close(listener_);
}

std::vector<std::string> MessageServer::received() const {
  const std::lock_guard lock(mutex_);
  return received_;
}

void MessageServer::serve() {
  while (!ends_) {
    const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection >= 0) {
      protocol_ == Http ? talk_http(connection) : talk_smtp(connection);
      ::close(connection);
    }
  }
}

void MessageServer::keep(std::string message) {
  const std::lock_guard lock(mutex_);
  received_.push_back(std::move(message));
}

void MessageServer::talk_http(int connection) {
  std::string text;
  std::string head;
  if (!read_until(connection, "\r\n\r\n", text, head)) {
    return;
  }
  while (text.size() < length_of(head) && read_more(connection, text)) {
  }
  int status = 200;
  {
    const std::lock_guard lock(mutex_);
    if (!statuses_.empty()) {
      status = statuses_.front();
      statuses_.pop_front();
    }
  }
  keep(text);
  say(connection,
      "HTTP/1.1 " + std::to_string(status) +
          " So\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
}

void MessageServer::talk_smtp(int connection) {
  std::string text;
  std::string line;
  say(connection, "220 ready\r\n");
  while (read_until(connection, "\r\n", text, line)) {
    if (line == "DATA") {
      std::string mail;
      say(connection, "354 go ahead\r\n");
      if (read_until(connection, "\r\n.\r\n", text, mail)) {
        keep(std::move(mail));
      }
    }
    say(connection, line == "QUIT" ? "221 bye\r\n" : "250 OK\r\n");
  }
}

}  // namespace rondo::test
