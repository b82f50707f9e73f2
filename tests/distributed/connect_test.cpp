#include "distributed/connect.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"

using rondo::connect_ranks;

namespace {

/// ScopedEnvironment variables of this process, while it lives.
class ScopedEnvironment {
 public:
  explicit ScopedEnvironment(std::vector<std::pair<const char*, const char*>> variables)
      : variables_(std::move(variables)) {
    for (const auto& [name, value] : variables_) {
      ::setenv(name, value, 1);
    }
  }

  ScopedEnvironment(const ScopedEnvironment&) = delete;
  ScopedEnvironment& operator=(const ScopedEnvironment&) = delete;

  ~ScopedEnvironment() {
    for (const auto& variable : variables_) {
      ::unsetenv(variable.first);
    }
  }

 private:
  std::vector<std::pair<const char*, const char*>> variables_;
};

}  // namespace

TEST_SUITE_BEGIN("distributed/connect");

TEST_CASE("a process that nobody launched is rank 0 of 1") {
  const auto ranks = connect_ranks(std::nullopt, rondo::TextLog());
  CHECK(ranks->rank() == 0);
  CHECK(ranks->world_size() == 1);
  const ScopedEnvironment one({{"RANK", "0"}, {"WORLD_SIZE", "1"}});
  CHECK(connect_ranks(std::nullopt, rondo::TextLog())->world_size() == 1);
}

TEST_CASE("C84, P18: ranks that the run does not ask for are refused, naming both ways to ask") {
  const ScopedEnvironment launched({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "9"}});
  try {
    connect_ranks(std::nullopt, rondo::TextLog());
    FAIL("they are not refused");
  } catch (const rondo::UsageError& error) {
    const std::string message = error.what();
    CAPTURE(message);
    CHECK(message.find("rank 1 of 2") != std::string::npos);
    CHECK(message.find("[trainer.init.distributed]") != std::string::npos);
    CHECK(message.find("rondo launch -n 2") != std::string::npos);
  }
}

TEST_CASE("ranks that cannot share the virtual ranks are refused before they connect") {
  const ScopedEnvironment launched({{"RANK", "1"}, {"WORLD_SIZE", "3"}, {"MASTER_PORT", "9"}});
  rondo::DistributedOptions options;
  options.virtual_ranks = 4;
  CHECK_THROWS_AS(connect_ranks(std::optional(options), rondo::TextLog()), rondo::UsageError);
}

TEST_SUITE_END();
