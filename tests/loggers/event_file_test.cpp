#include "loggers/event_file.h"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/file_system.h"
#include "support/temp_dir.h"

using namespace rondo;

TEST_SUITE_BEGIN("loggers/event_file");

namespace {

std::vector<std::string> payloads_in(const std::filesystem::path& path) {
  const std::string bytes = real_file_system()->read(path);
  size_t at = 0;
  std::vector<std::string> payloads;
  while (at < bytes.size()) {
    uint64_t length = 0;
    std::memcpy(&length, bytes.data() + at, sizeof length);
    REQUIRE(at + 16 + length <= bytes.size());
    payloads.push_back(bytes.substr(at + 12, length));
    at += 16 + length;
  }
  return payloads;
}

/// While it lives, no file that this process writes can grow beyond a size: a full disk.
class SmallFiles {
 public:
  explicit SmallFiles(rlim_t bytes) : handler_before_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small = {bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
  }

  SmallFiles(const SmallFiles&) = delete;
  SmallFiles& operator=(const SmallFiles&) = delete;

  ~SmallFiles() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_before_);
  }

 private:
  void (*handler_before_)(int);
  rlimit before_{};
};

}  // namespace

TEST_CASE("the checksum is CRC-32C: the standard's check value") {
  CHECK(crc32c("123456789", 9) == 0xe3069283);
}

TEST_CASE("records frame their payload with its length: the version first, then the scalars") {
  const test::TempDir dir;
  EventFile file(dir / "events");
  file.add_scalars(7, {{"val/loss", 0.5F}});
  file.flush();
  const std::vector<std::string> payloads = payloads_in(file.path());
  REQUIRE(payloads.size() == 2);
  CHECK(payloads[0].find("brain.Event:2") != std::string::npos);
  CHECK(payloads[1].find("val/loss") != std::string::npos);
}

TEST_CASE("what a full disk took is told once, and later events go into a new file") {
  const test::TempDir dir;
  EventFile file(dir / "events");
  file.flush();
  const std::filesystem::path first = file.path();
  {
    const SmallFiles full(100);
    file.add_scalars(7, {{std::string(1000, 'x'), 0.5F}});
    CHECK_THROWS_AS(file.flush(), IoError);
    file.add_scalars(8, {{std::string(1000, 'y'), 0.5F}});
    CHECK_NOTHROW(file.flush());
  }
  CHECK(file.lost() == 2);
  file.add_scalars(9, {{"val/loss", 0.5F}});
  CHECK_NOTHROW(file.flush());
  CHECK(file.path() != first);
  const std::vector<std::string> payloads = payloads_in(file.path());
  REQUIRE(payloads.size() == 2);
  CHECK(payloads[0].find("brain.Event:2") != std::string::npos);
  CHECK(payloads[1].find("val/loss") != std::string::npos);
}

TEST_SUITE_END();
