#include "loggers/writer_thread.h"

#include <doctest/doctest.h>

#include <future>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/error.h"

using namespace rondo;

TEST_SUITE_BEGIN("loggers/writer_thread");

TEST_CASE("tasks are done in order, all of them before it goes") {
  std::vector<int> done;
  {
    WriterThread writer;
    for (int i = 0; i < 100; ++i) {
      writer.push(1, [&done, i] { done.push_back(i); });
    }
    writer.wait();
    CHECK(done.size() == 100);
    writer.push(1, [&done] { done.push_back(100); });
  }
  REQUIRE(done.size() == 101);
  for (int i = 0; i <= 100; ++i) {
    CHECK(done[static_cast<size_t>(i)] == i);
  }
}

TEST_CASE("what a task throws is thrown once, and the others are done") {
  WriterThread writer;
  bool is_done = false;
  writer.push(1, [] { throw std::runtime_error("first"); });
  writer.push(1, [] { throw std::runtime_error("second"); });
  writer.push(1, [&] { is_done = true; });
  writer.wait();
  CHECK(is_done);
  CHECK_THROWS_WITH_AS(writer.rethrow(), "cannot log: first", IoError);
  CHECK_NOTHROW(writer.rethrow());
}

TEST_CASE("a full queue waits, and says so once; a task larger than the queue waits for it alone") {
  std::promise<void> go_on;
  std::vector<std::string> warnings;
  std::vector<int> done;
  WriterThread writer;
  writer.warn_of_waits(TextLog::to([&](LogLevel, std::string_view message) {
                         warnings.emplace_back(message);
                         go_on.set_value();
                       }),
                       "a file");
  constexpr size_t kMiB = size_t{1} << 20;
  writer.push(4 * kMiB, [&] {
    go_on.get_future().wait();
    done.push_back(0);
  });
  writer.push(4 * kMiB, [&] { done.push_back(1); });
  CHECK(warnings.empty());
  writer.push(100 * kMiB, [&] { done.push_back(2); });
  CHECK(warnings.size() == 1);
  writer.push(100 * kMiB, [&] { done.push_back(3); });
  writer.wait();
  CHECK(done == std::vector<int>{0, 1, 2, 3});
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].rfind("a file takes values more slowly", 0) == 0);
}

TEST_SUITE_END();
