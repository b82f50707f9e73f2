#include "loggers/event_file.h"

#include <doctest/doctest.h>

#include <cstring>

#include "core/file_system.h"
#include "support/temp_dir.h"

using namespace rondo;

TEST_SUITE_BEGIN("loggers/event_file");

TEST_CASE("the checksum is CRC-32C: the standard's check value") {
  CHECK(crc32c("123456789", 9) == 0xe3069283);
}

TEST_CASE("records frame their payload with its length: the version first, then the scalars") {
  const test::TempDir dir;
  EventFile file(dir / "events");
  file.add_scalars(7, {{"val/loss", 0.5F}});
  file.flush();
  const std::string bytes = real_file_system()->read(file.path());
  size_t at = 0;
  std::vector<std::string> payloads;
  while (at < bytes.size()) {
    uint64_t length = 0;
    std::memcpy(&length, bytes.data() + at, sizeof length);
    REQUIRE(at + 16 + length <= bytes.size());
    payloads.push_back(bytes.substr(at + 12, length));
    at += 16 + length;
  }
  REQUIRE(payloads.size() == 2);
  CHECK(payloads[0].find("brain.Event:2") != std::string::npos);
  CHECK(payloads[1].find("val/loss") != std::string::npos);
}

TEST_SUITE_END();
