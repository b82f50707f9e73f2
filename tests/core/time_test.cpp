#include "core/time.h"

#include <doctest/doctest.h>

#include <string>

#include "core/error.h"

using rondo::Time;
using rondo::TimeUnit;
using rondo::UsageError;

TEST_SUITE_BEGIN("core/time");

TEST_CASE("C1: strings of every unit parse, whatever their case; fractions of whole units do not") {
  CHECK(Time("5ep") == Time::in(TimeUnit::Epoch, 5));
  CHECK(Time("3e4tok") == Time::in(TimeUnit::Token, 30000));
  CHECK(Time("10BA") == Time(10));
  CHECK(Time("0.5dur") == Time(0.5));
  CHECK_THROWS_AS(Time("1.5ep"), UsageError);
  CHECK_THROWS_AS(Time("5xx"), UsageError);
}

TEST_CASE("C2: the wall-clock form is ordered and in range; a bare number is refused") {
  CHECK(Time("1h30m") == Time::in(TimeUnit::Second, 5400));
  CHECK(Time("10s") == Time::in(TimeUnit::Second, 10));
  CHECK(Time("45m") == Time::in(TimeUnit::Second, 2700));
  for (const char* text :
       {"90m", "24h", "2epoch", "10S", "5", "", "1m5", "1h5", "5s1h", "-1h", "nan", "1e400ba"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(Time{text}, UsageError);
  }
}

TEST_CASE("C3: different units are neither compared nor added") {
  CHECK_THROWS_AS((void)(Time("3ep") == Time("3ba")), UsageError);
  CHECK_THROWS_AS((void)(Time("3ep") < Time("3ba")), UsageError);
  CHECK_THROWS_AS((void)(Time("3ep") + Time("3ba")), UsageError);
  CHECK(Time("3ep") + Time("2ep") == Time("5ep"));
}

TEST_CASE("C4: products truncate, a ratio is a number") {
  CHECK(Time("2ep") * 0.5 == Time("1ep"));
  CHECK(Time("3ep") * 0.5 == Time("1ep"));
  CHECK(Time("4ep") / Time("2ep") == 2.0);
  CHECK_THROWS_AS((void)(Time("4ep") / Time("2ba")), UsageError);
}

TEST_CASE("a time round-trips through its text") {
  for (const char* text : {"5ep", "0.5dur", "12ba", "7sp", "9007199254740991tok", "5400sec"}) {
    CHECK(Time(text).to_string() == text);
  }
}

TEST_CASE("what is counted of a run: a fraction is rounded up, epochs are updates if known") {
  const rondo::RunLength known{10, 4};
  CHECK(rondo::counted(Time(0.3), known) == Time(3));
  CHECK(rondo::counted(Time(0.25), known) == Time(3));
  CHECK(rondo::counted(Time("2ep"), known) == Time(8));
  CHECK(rondo::counted(Time("2ep"), {}) == Time("2ep"));
  CHECK(rondo::counted(Time(7), {}) == Time(7));
  CHECK(rondo::counted(Time("1h"), known) == Time("1h"));
  CHECK(rondo::counted(Time::in(TimeUnit::Epoch, Time::kMost), known) == Time(Time::kMost));
  CHECK(rondo::counted(Time(1e15), known) == Time(Time::kMost));
  CHECK_THROWS_AS(rondo::counted(Time(0.5), {}), UsageError);
}

TEST_CASE("a fraction of a run is in the unit of its total") {
  CHECK(rondo::counted(Time(0.5), {Time("1001sp"), 4}) == Time("501sp"));
  CHECK(rondo::counted(Time(0.5), {Time("1h"), {}}) == Time("30m"));
}

TEST_SUITE_END();
