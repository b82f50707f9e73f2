#include "distributed/free_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "core/file_descriptor.h"

namespace rondo {

int free_port() {
  const detail::FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  const bool is_bound =
      ::bind(socket.get(), any, size) == 0 && ::getsockname(socket.get(), any, &size) == 0;
  return is_bound ? ntohs(address.sin_port) : 0;
}

}  // namespace rondo
