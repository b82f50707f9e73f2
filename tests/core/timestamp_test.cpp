#include "core/timestamp.h"

#include <doctest/doctest.h>

#include "core/error.h"

using rondo::RunLength;
using rondo::Time;
using rondo::Timestamp;
using rondo::TimeUnit;

TEST_SUITE_BEGIN("core/timestamp");

TEST_CASE("a batch moves every counter, an update only at the end of its group") {
  Timestamp time;
  time.advance_batch({4, 40, 0.5, false});
  CHECK(time.update == 0);
  time.advance_batch({4, 40, 0.25, true});
  CHECK(time.update == 1);
  CHECK(time.batch == 2);
  CHECK(time.sample == 8);
  CHECK(time.token == 80);
  CHECK(time.total_seconds == 0.75);
  CHECK(time.batch_seconds == 0.25);
}

TEST_CASE("C5: a timestamp is compared in the unit of the time; it has no fraction") {
  Timestamp time;
  time.advance_epoch();
  time.advance_epoch();
  CHECK(time.reached("2ep"));
  CHECK_FALSE(time.reached("3ep"));
  CHECK_THROWS_AS(time.get(TimeUnit::Fraction), rondo::UsageError);
}

TEST_CASE("C6: the next epoch zeroes what is counted in the epoch and keeps the totals") {
  Timestamp time;
  time.advance_batch({4, 40, 1.0, true});
  time.advance_epoch();
  CHECK(time.epoch == 1);
  CHECK(time.batch == 1);
  CHECK(time.batch_in_epoch == 0);
  CHECK(time.sample == 4);
  CHECK(time.sample_in_epoch == 0);
  CHECK(time.token_in_epoch == 0);
}

TEST_CASE("C33: a sample interval fires when it is crossed, even if it is skipped over") {
  Timestamp before;
  before.sample = 90;
  Timestamp after;
  after.sample = 110;
  CHECK(rondo::crosses("100sp", before, after, {}));
  CHECK_FALSE(rondo::crosses("100sp", after, after, {}));
  CHECK_FALSE(rondo::crosses(0, before, after, {}));
}

TEST_CASE("C34: a fraction of the run fires every so many updates") {
  int fired = 0;
  Timestamp time;
  for (int i = 0; i < 8; ++i) {
    const Timestamp before = time;
    time.advance_batch({1, 0, 0.0, true});
    fired += rondo::crosses(0.25, before, time, RunLength{8, 8}) ? 1 : 0;
  }
  CHECK(fired == 4);
}

TEST_CASE("a fraction of a run in samples fires every so many samples") {
  Timestamp before;
  before.sample = 240;
  Timestamp after;
  after.sample = 260;
  const RunLength run{Time("1000sp"), 8};
  CHECK(rondo::crosses(0.25, before, after, run));
  CHECK_FALSE(rondo::crosses(0.5, before, after, run));
}

TEST_CASE("amounts are counts, of seconds with their parts") {
  Timestamp time;
  time.advance_batch({4, 40, 1.25, true});
  CHECK(time.amount(TimeUnit::Sample) == 4.0);
  CHECK(time.amount(TimeUnit::Second) == 1.25);
  CHECK(time.get(TimeUnit::Second) == 1);
  CHECK_THROWS_AS(time.amount(TimeUnit::Fraction), rondo::UsageError);
}

TEST_CASE("a timestamp comes back from its state") {
  Timestamp time;
  time.advance_batch({4, 40, 0.125, true});
  time.advance_epoch();
  Timestamp loaded;
  loaded.load(time.state_dict());
  CHECK(rondo::first_difference(loaded.state_dict(), time.state_dict()).empty());
}

TEST_SUITE_END();
