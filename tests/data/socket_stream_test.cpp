#include "data/streams/socket_stream.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <torch/types.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/state_dict.h"
#include "data/data_files.h"
#include "data/data_loader.h"
#include "support/python.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

namespace {

template <class T>
std::string bytes_of(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

/// The header of a stream of `x`, int64 [2].
std::string header(int64_t size = 2) {
  return "RONDOSTR" + bytes_of(uint32_t{1}) + bytes_of(uint32_t{1}) + bytes_of(uint32_t{1}) + "x" +
         bytes_of(uint32_t{4}) + bytes_of(uint32_t{1}) + bytes_of(size);
}

std::string sample(int64_t a, int64_t b) {
  return "SAMPLE  " + bytes_of(a) + bytes_of(b);
}

/// A producer that sends these bytes and then nothing more. The bytes fit into the socket's buffer.
class Producer {
 public:
  Producer(const std::filesystem::path& path, const std::string& bytes)
      : socket_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path.string().copy(address.sun_path, sizeof(address.sun_path) - 1);
    REQUIRE(::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    REQUIRE(::send(socket_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  }

  Producer(const Producer&) = delete;
  Producer& operator=(const Producer&) = delete;

  ~Producer() { ::close(socket_); }

  void end() const { ::shutdown(socket_, SHUT_WR); }

  /// The epoch that the next pass was asked for.
  uint64_t epoch() const {
    char request[16] = {};
    REQUIRE(::recv(socket_, request, sizeof(request), MSG_WAITALL) == 16);
    REQUIRE(std::string(request, 8) == "BEGIN   ");
    uint64_t number = 0;
    std::memcpy(&number, request + 8, sizeof(number));
    return number;
  }

 private:
  int socket_;
};

SocketStream::Options options_in(const TempDir& dir) {
  SocketStream::Options options;
  options.path = (dir / "s").string();
  return options;
}

/// What reading a stream of these bytes to its end throws.
std::string refusal(const std::string& bytes) {
  const TempDir dir;
  SocketStream::Options options = options_in(dir);
  options.max_sample_bytes = 1000;
  SocketStream data(options);
  const Producer producer(options.path, bytes);
  producer.end();
  return message_of([&] {
    data.start(0);
    while (data.next()) {
    }
  });
}

}  // namespace

TEST_SUITE_BEGIN("data/socket_stream");

TEST_CASE("a producer sends the samples of the passes that it is asked for") {
  const TempDir dir;
  const SocketStream::Options options = options_in(dir);
  SocketStream data(options);
  const Producer producer(
      options.path,
      header() + sample(1, 2) + sample(3, 4) + "END     " + sample(5, 6) + "END     ");
  data.start(7);
  CHECK(producer.epoch() == 7);
  const auto first = data.next();
  REQUIRE(first);
  CHECK(equal_bytes((*first)["x"], torch::tensor({1, 2}, torch::kLong)));
  CHECK(data.next());
  CHECK_FALSE(data.next());
  CHECK_FALSE(data.next());
  data.start(8);
  CHECK(producer.epoch() == 8);
  CHECK((*data.next())["x"][0].item<int64_t>() == 5);
}

TEST_CASE("a pass that begins before the last one ended takes another producer") {
  const TempDir dir;
  const SocketStream::Options options = options_in(dir);
  SocketStream data(options);
  const Producer first(options.path, header() + sample(1, 2) + sample(3, 4));
  data.start(0);
  CHECK(data.next());
  const Producer second(options.path, header() + sample(9, 9));
  data.start(0);
  CHECK((*data.next())["x"][0].item<int64_t>() == 9);
}

TEST_CASE("streams that are wrong are refused before memory is taken, with the offset") {
  CHECK(contains(refusal("RONDOSTS" + std::string(20, 'x')), "offset 8: this is no stream"));
  CHECK(contains(refusal("RONDOSTR" + bytes_of(uint32_t{2})), "version"));
  CHECK(contains(refusal(header(int64_t{1} << 39)), "max_sample_bytes"));
  CHECK(contains(refusal(header(-1)), "a size is -1"));
  CHECK(contains(refusal(header() + "SAMPLES "), "expected SAMPLE or END"));
  CHECK(contains(refusal(header() + sample(1, 2).substr(0, 12)), "the producer is gone"));
  std::string type = header();
  type[21] = 99;
  CHECK(contains(refusal(type), "a type is 99"));
}

TEST_CASE("a producer that never comes is an error that names the socket") {
  const TempDir dir;
  SocketStream::Options options = options_in(dir);
  options.timeout = 1e-3;
  SocketStream data(options);
  CHECK(contains(message_of([&] { data.start(0); }), options.path + ": offset 0: no producer"));
  options.path = std::string(200, 'a');
  CHECK_THROWS_AS(SocketStream{options}, UsageError);
}

TEST_CASE("another file at the socket's path stays") {
  const TempDir dir;
  write_file(dir / "s", "precious");
  CHECK_THROWS_AS(SocketStream(options_in(dir)), IoError);
  CHECK(std::filesystem::file_size(dir / "s") == 8);
}

TEST_CASE("the examples' producers give each pass, the same each time, and end with the run") {
  std::vector<std::string> producers = {RONDO_PRODUCER};
  if (!python_with("socket").empty()) {
    producers.push_back(python_with("socket") + " " RONDO_SOURCE_DIR
                                                "/examples/producer/producer.py");
  }
  for (const std::string& producer : producers) {
    if (producer.empty()) {
      continue;
    }
    CAPTURE(producer);
    const TempDir dir;
    const SocketStream::Options options = options_in(dir);
    FILE* const process = ::popen((producer + " " + options.path).c_str(), "w");
    REQUIRE(process != nullptr);
    {
      LoaderOptions how;
      how.batch_size = 100;
      const DataLoader loader(use<SocketStream>(options), how);
      std::vector<at::Tensor> batches;
      for (const int64_t epoch : {0, 1, 0}) {
        const auto stream = loader.stream({epoch, 0}, 0);
        batches.push_back((*stream->next())["x"]);
        int64_t count = 1;
        while (stream->next()) {
          ++count;
        }
        CHECK(count == 6);
      }
      CHECK(equal_bytes(batches[0], batches[2]));
      CHECK_FALSE(equal_bytes(batches[0], batches[1]));
    }
    CHECK(::pclose(process) == 0);
  }
}

TEST_SUITE_END();
