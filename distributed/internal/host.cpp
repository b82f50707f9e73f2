#include "distributed/internal/host.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>

#include "core/file_descriptor.h"

namespace rondo {

namespace {

constexpr const char* kLoopback = "127.0.0.1";

std::string address_of(const sockaddr* address, socklen_t size) {
  char text[NI_MAXHOST] = {};
  const int error = ::getnameinfo(address, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return error == 0 ? text : kLoopback;
}

/// This boot of the machine, and what the process sees of it.
std::string namespace_of_process(const char* kind) {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::error_code error;
  const std::filesystem::path link = std::filesystem::path("/proc/self/ns") / kind;
  return boot + " " + std::filesystem::read_symlink(link, error).string();
}

}  // namespace

std::string host_of_process() {
  return namespace_of_process("pid");
}

std::string network_of_process() {
  return namespace_of_process("net");
}

// Connecting a datagram socket sends nothing; it only finds the way.
std::string address_towards(const std::string& host, int port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    return kLoopback;
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
  const detail::FileDescriptor socket(::socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage own = {};
  socklen_t size = sizeof own;
  auto* const address = reinterpret_cast<sockaddr*>(&own);
  const bool is_known = ::connect(socket.get(), found->ai_addr, found->ai_addrlen) == 0 &&
                        ::getsockname(socket.get(), address, &size) == 0;
  return is_known ? address_of(address, size) : kLoopback;
}

}  // namespace rondo
