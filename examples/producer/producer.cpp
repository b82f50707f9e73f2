// Sends samples to a run that reads a SocketStream: producer SOCKET
// A sample is two numbers and whether the first is larger. Pass `epoch` always gives the same
// samples, so a run that is resumed sees what the run without a stop saw. Ends with the run.

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <string>

namespace {

constexpr uint32_t kFloat32 = 6;
constexpr uint32_t kInt64 = 4;

template <class T>
void put(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));  // little endian, as here
}

void put_form(std::string& bytes, const std::string& name, uint32_t type, int64_t size) {
  put(bytes, static_cast<uint32_t>(name.size()));
  bytes += name;
  put(bytes, type);
  put(bytes, static_cast<uint32_t>(size > 0 ? 1 : 0));
  if (size > 0) {
    put(bytes, size);
  }
}

int connect_to(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  while (true) {
    const int connection = ::socket(AF_UNIX, SOCK_STREAM, 0);
    if (::connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) {
      return connection;
    }
    ::close(connection);  // the run has not begun
    ::usleep(50000);
  }
}

/// \return false when the run has ended
bool send_all(int connection, const std::string& bytes) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t count =
        ::send(connection, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (count <= 0) {
      return false;
    }
    sent += static_cast<size_t>(count);
  }
  return true;
}

bool send_pass(int connection, uint64_t epoch) {
  constexpr int kSamples = 512;
  std::mt19937_64 draw(epoch);
  std::uniform_real_distribution<float> number(-1.0F, 1.0F);
  for (int i = 0; i < kSamples; ++i) {
    const float first = number(draw);
    const float second = number(draw);
    std::string sample = "SAMPLE  ";
    put(sample, first);
    put(sample, second);
    put(sample, static_cast<int64_t>(first > second));
    if (!send_all(connection, sample)) {
      return false;
    }
  }
  return send_all(connection, "END     ");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    return 2;
  }
  const int connection = connect_to(argv[1]);
  std::string header = "RONDOSTR";
  put(header, uint32_t{1});  // version
  put(header, uint32_t{2});  // tensors
  put_form(header, "x", kFloat32, 2);
  put_form(header, "label", kInt64, 0);
  bool is_connected = send_all(connection, header);
  char request[16];
  while (is_connected && ::recv(connection, request, sizeof(request), MSG_WAITALL) == 16) {
    uint64_t epoch = 0;
    std::memcpy(&epoch, request + 8, sizeof(epoch));
    is_connected = send_pass(connection, epoch);
  }
  ::close(connection);
  return 0;
}
