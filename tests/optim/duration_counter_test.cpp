#include "optim/duration_counter.h"

#include <doctest/doctest.h>

#include <string>

#include "core/error.h"

using namespace rondo;

TEST_SUITE_BEGIN("optim/duration_counter");

TEST_CASE("the first duration that is not 0 sets the unit") {
  DurationCounter counter({100, 10});
  CHECK(counter.unit() == TimeUnit::Update);
  CHECK(counter.count("A.length", 0, 0) == 0.0);
  CHECK(counter.count("B.length", "30sp", 1) == 30.0);
  CHECK(counter.unit() == TimeUnit::Sample);
  CHECK(counter.count("C.length", 0.0, 0) == 0.0);
  CHECK_THROWS_AS(counter.count("D.length", 1, 0), UsageError);
}

TEST_CASE("fractions and epochs count as updates where those are known") {
  DurationCounter counter({100, 10});
  CHECK(counter.count("A.length", 0.25, 0) == 25.0);
  CHECK(counter.count("B.length", "2ep", 0) == 20.0);
  CHECK(counter.count("C.length", 7, 0) == 7.0);
  DurationCounter unsized({100, {}});
  CHECK(unsized.count("A.length", "2ep", 0) == 2.0);
  CHECK(unsized.unit() == TimeUnit::Epoch);
}

TEST_CASE("a duration that is too short or cannot be counted is an error that names it") {
  const auto complaint = [](const Time& duration, int64_t least) -> std::string {
    try {
      DurationCounter({}).count("A.length", duration, least);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(complaint("5tok", 5).empty());
  CHECK(complaint("5tok", 6).find("A.length") == 0);
  CHECK(complaint("5tok", 6).find("6tok") != std::string::npos);
  CHECK(complaint(0.5, 0).find("A.length") == 0);
}

TEST_SUITE_END();
