#include "data/streams/socket_stream.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/file_descriptor.h"
#include "core/registry.h"
#include "core/require.h"
#include "data/register.h"

namespace rondo {

namespace {

using Options = SocketStream::Options;
using Clock = std::chrono::steady_clock;

// docs/data.md, "Samples from another process". All numbers are little endian.
constexpr std::string_view kFormat = "RONDOSTR";
constexpr std::string_view kBegin = "BEGIN   ";
constexpr std::string_view kSample = "SAMPLE  ";
constexpr std::string_view kEnd = "END     ";
constexpr uint32_t kVersion = 1;
constexpr uint32_t kMostTensors = 256;
constexpr uint32_t kLongestName = 256;
constexpr uint32_t kMostDimensions = 8;

/// By the numbers that the header has.
const std::vector<c10::ScalarType>& wire_types() {
  static const std::vector<c10::ScalarType> known = {
      at::kByte, at::kChar, at::kShort, at::kInt, at::kLong, at::kHalf, at::kFloat, at::kDouble};
  return known;
}

struct TensorForm {
  std::string name;
  c10::ScalarType type;
  std::vector<int64_t> shape;
};

/// Whatever else is there stays, and `bind` fails.
void remove_socket(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_socket(path, error)) {
    ::unlink(path.c_str());
  }
}

int listen_at(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  detail::FileDescriptor listening(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (listening.get() < 0) {
    throw IoError("a socket cannot be made", errno);
  }
  remove_socket(path);
  const auto* const raw = reinterpret_cast<const sockaddr*>(&address);
  if (::bind(listening.get(), raw, sizeof(address)) != 0 || ::listen(listening.get(), 1) != 0) {
    throw IoError(path + ": cannot listen", errno);
  }
  return listening.release();
}

}  // namespace

/// A producer that is connected.
class SocketStream::Connection {
 public:
  Connection(const Options& options, int listening) : options_(options), socket_(-1) {
    wait_for(listening, POLLIN, "no producer connected");
    socket_ = detail::FileDescriptor(::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC));
    if (socket_.get() < 0) {
      throw IoError(options_.path + ": the connection failed", errno);
    }
    read_forms();
  }

  void begin(int64_t epoch) {
    is_over_ = false;
    std::string message(kBegin);
    const auto number = static_cast<uint64_t>(epoch);
    message.append(reinterpret_cast<const char*>(&number), sizeof(number));
    send(message);
  }

  /// True between two passes.
  bool is_over() const { return is_over_; }

  std::optional<Sample> next() {
    if (is_over_) {
      return std::nullopt;
    }
    char mark[8];
    receive(mark, sizeof(mark));
    const std::string_view text(mark, sizeof(mark));
    if (text == kEnd) {
      is_over_ = true;
      return std::nullopt;
    }
    if (text != kSample) {
      fail("expected SAMPLE or END");
    }
    Sample sample;
    for (const TensorForm& form : forms_) {
      const at::Tensor tensor = at::empty(form.shape, form.type);
      receive(tensor.data_ptr(), tensor.nbytes());
      sample.set(form.name, tensor);
    }
    return sample;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(fmt::format("{}: offset {}: {}", options_.path, received_, what));
  }

  void wait_for(int fd, short what, const char* otherwise) const {
    const auto end = Clock::now() + std::chrono::duration<double>(options_.timeout);
    while (true) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
      if (left.count() < 0) {
        fail(fmt::format("{} within {} s", otherwise, options_.timeout));
      }
      pollfd asked = {fd, what, 0};
      constexpr int64_t kLongest = 1000000;  // ms; poll takes an int
      const int count =
          ::poll(&asked, 1, static_cast<int>(std::min<int64_t>(left.count() + 1, kLongest)));
      if (count > 0) {
        return;
      }
      if (count < 0 && errno != EINTR) {
        throw IoError(options_.path + ": cannot wait", errno);
      }
    }
  }

  void receive(void* to, size_t size) {
    auto* at = static_cast<char*>(to);
    while (size > 0) {
      wait_for(socket_.get(), POLLIN, "the producer sent nothing");
      const ssize_t got = ::recv(socket_.get(), at, size, 0);
      if (got < 0 && errno == EINTR) {
        continue;
      }
      if (got <= 0) {
        fail("the producer is gone");
      }
      at += got;
      size -= static_cast<size_t>(got);
      received_ += got;
    }
  }

  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      wait_for(socket_.get(), POLLOUT, "the producer takes nothing");
      const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) {
        continue;
      }
      if (sent < 0) {
        fail("the producer is gone");
      }
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
  }

  template <class T>
  T number(const char* what, T least, T most) {
    T value{};
    receive(&value, sizeof(value));
    if (value < least || value > most) {
      fail(fmt::format("{} is {}, not in [{}, {}]", what, value, least, most));
    }
    return value;
  }

  void read_forms() {
    char format[8];
    receive(format, sizeof(format));
    if (std::string_view(format, sizeof(format)) != kFormat) {
      fail("this is no stream of samples");
    }
    number<uint32_t>("the version", kVersion, kVersion);
    const auto count = number<uint32_t>("the number of tensors", 1, kMostTensors);
    int64_t bytes = 0;
    for (uint32_t i = 0; i < count; ++i) {
      forms_.push_back(read_form());
      bytes += bytes_of(forms_.back(), options_.max_sample_bytes - bytes);
    }
  }

  TensorForm read_form() {
    TensorForm form;
    form.name.resize(number<uint32_t>("the length of a name", 1, kLongestName));
    receive(form.name.data(), form.name.size());
    const auto last = static_cast<uint32_t>(wire_types().size() - 1);
    form.type = wire_types()[number<uint32_t>("a type", 0, last)];
    form.shape.resize(number<uint32_t>("the number of dimensions", 0, kMostDimensions));
    for (int64_t& size : form.shape) {
      size = number<int64_t>("a size", 0, int64_t{1} << 40);
    }
    return form;
  }

  int64_t bytes_of(const TensorForm& form, int64_t left) const {
    auto bytes = static_cast<int64_t>(c10::elementSize(form.type));
    for (const int64_t size : form.shape) {
      if (size > 0 && bytes > left / size) {
        fail(
            fmt::format("a sample has more than max_sample_bytes = {}", options_.max_sample_bytes));
      }
      bytes *= size;
    }
    if (bytes > left) {
      fail(fmt::format("a sample has more than max_sample_bytes = {}", options_.max_sample_bytes));
    }
    return bytes;
  }

  const Options& options_;
  detail::FileDescriptor socket_;
  std::vector<TensorForm> forms_;
  int64_t received_ = 0;  // bytes
  bool is_over_ = true;
};

void SocketStream::check(const Options& options) {
  constexpr size_t kLongest = sizeof(sockaddr_un::sun_path) - 1;
  detail::require(!options.path.empty() && options.path.size() <= kLongest,
                  "SocketStream: path",
                  fmt::format("of 1 to {} characters", kLongest),
                  '"' + options.path + '"');
  detail::require(options.timeout > 0, "SocketStream: timeout", "> 0", options.timeout);
  detail::require(options.max_sample_bytes >= 1,
                  "SocketStream: max_sample_bytes",
                  ">= 1",
                  options.max_sample_bytes);
}

SocketStream::SocketStream(const Options& options) : options_(options) {
  check(options_);
  listening_ = listen_at(options_.path);
}

SocketStream::~SocketStream() {
  connection_.reset();
  ::close(listening_);
  remove_socket(options_.path);
}

/// A producer that is in the middle of a pass is sent away: the next one begins anew.
void SocketStream::start(int64_t epoch) {
  if (connection_ && !connection_->is_over()) {
    connection_.reset();
  }
  if (!connection_) {
    connection_ = std::make_unique<Connection>(options_, listening_);
  }
  connection_->begin(epoch);
}

std::optional<Sample> SocketStream::next() {
  return connection_ ? connection_->next() : std::nullopt;
}

void register_socket_stream(Registry<DataSource>& registry) {
  registry
      .add<SocketStream>("SocketStream", "Samples that another process sends over a Unix socket.")
      .key("path", &Options::path, "of the socket, which rondo makes")
      .required()
      .key("timeout", &Options::timeout, greater_than(0), "seconds that it waits for the producer")
      .key("max_sample_bytes",
           &Options::max_sample_bytes,
           at_least(1),
           "of one sample; more is refused")
      .key("epoch_samples",
           &Options::epoch_samples,
           at_least(1),
           "samples of a pass, where they are known before");
}

}  // namespace rondo
