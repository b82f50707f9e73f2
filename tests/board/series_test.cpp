#include "board/series.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

TEST_SUITE_BEGIN("board/series");

using namespace rondo;

namespace {

RunRecord run_of(const std::vector<double>& values, int64_t every = 1) {
  RunRecord run;
  run.begin = 100.0;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto step = static_cast<int64_t>(i + 1) * every;
    run.metrics["loss"].push_back({step, 100.0 + 0.5 * static_cast<double>(step), values[i]});
  }
  return run;
}

/// A run whose loss at update i is i % 7.
RunRecord long_run(int64_t count) {
  std::vector<double> values;
  for (int64_t i = 1; i <= count; ++i) {
    values.push_back(static_cast<double>(i % 7));
  }
  return run_of(values);
}

}  // namespace

TEST_CASE("few points come as they are") {
  const Series series = series_of(run_of({3, 1, 2}, 10), "loss", {});
  CHECK(series.x == std::vector<double>{10, 20, 30});
  CHECK(series.y == std::vector<double>{3, 1, 2});
  CHECK(series.low == series.y);
  CHECK(series.high == series.y);
  CHECK(series.count == 3);
  CHECK(series.why.empty());
}

TEST_CASE("smoothing weights what was before, without a pull to zero, and keeps raw values") {
  SeriesView view;
  view.smooth = 0.5;
  const Series series = series_of(run_of({4, 1, 1}), "loss", view);
  REQUIRE(series.y.size() == 3);
  CHECK(series.y[0] == doctest::Approx(4.0));
  CHECK(series.y[1] == doctest::Approx((0.25 * 4 + 0.5 * 1) / 0.75));
  CHECK(series.y[2] == doctest::Approx((0.125 * 4 + 0.25 * 1 + 0.5 * 1) / 0.875));
  CHECK(series.low == std::vector<double>{4, 1, 1});
  const Series constant = series_of(run_of({3, 3, 3, 3}), "loss", view);
  for (const double y : constant.y) {
    CHECK(y == doctest::Approx(3.0));
  }
}

TEST_CASE(
    "buckets have the least and greatest raw value, the mean, and the x of their last point") {
  SeriesView view;
  view.points = 10;
  const Series series = series_of(long_run(70), "loss", view);  // 1 to 70, width 8
  REQUIRE(series.x.size() <= 10);
  CHECK(series.count == 70);
  CHECK(series.x.front() == 7.0);  // the bucket from 0 to 8
  CHECK(series.y.front() == doctest::Approx((1 + 2 + 3 + 4 + 5 + 6 + 0) / 7.0));
  CHECK(series.low.front() == 0.0);
  CHECK(series.high.front() == 6.0);
  CHECK(series.x.back() == 70.0);
}

TEST_CASE("no more buckets than asked for, whatever the number of points") {
  for (const int64_t count : {11, 15, 16, 17, 31, 63, 64, 65, 100, 999}) {
    for (const char* x : {"update", "time"}) {
      CAPTURE(count);
      CAPTURE(x);
      SeriesView view;
      view.points = 10;
      view.x = x;
      const Series series = series_of(long_run(count), "loss", view);
      CHECK(series.x.size() <= 10);
      CHECK(series.x.size() > 4);
      CHECK(std::is_sorted(series.x.begin(), series.x.end()));
    }
  }
}

TEST_CASE("buckets that are full stay as they are while a run grows") {
  SeriesView view;
  view.points = 10;
  view.smooth = 0.9;
  const Series before = series_of(long_run(66), "loss", view);
  const Series after = series_of(long_run(70), "loss", view);
  REQUIRE(after.x.size() >= before.x.size());
  for (size_t i = 0; i + 1 < before.x.size(); ++i) {
    CHECK(after.x[i] == before.x[i]);
    CHECK(after.y[i] == before.y[i]);
    CHECK(after.low[i] == before.low[i]);
    CHECK(after.high[i] == before.high[i]);
  }
}

TEST_CASE("a range cuts after smoothing: what is seen does not change with the zoom") {
  SeriesView view;
  view.smooth = 0.9;
  const Series whole = series_of(long_run(50), "loss", view);
  view.from = 20.0;
  view.to = 30.0;
  const Series zoomed = series_of(long_run(50), "loss", view);
  REQUIRE(zoomed.x.size() == 11);
  CHECK(zoomed.count == 11);
  CHECK(zoomed.x.front() == 20.0);
  CHECK(zoomed.y.front() == whole.y[19]);
  view.from = 1000.0;
  CHECK(series_of(long_run(50), "loss", view).x.empty());
}

TEST_CASE("values that are not finite do not smooth, and show where nothing else is") {
  const double nan = std::nan("");
  const double inf = std::numeric_limits<double>::infinity();
  SeriesView view;
  view.smooth = 0.5;
  const Series series = series_of(run_of({2, nan, 2, inf, 2}), "loss", view);
  CHECK(series.y[0] == 2.0);
  CHECK(std::isnan(series.y[1]));
  CHECK(series.y[2] == doctest::Approx(2.0));
  CHECK(series.y[3] == inf);
  CHECK(series.y[4] == doctest::Approx(2.0));
  std::vector<double> values(100, 1.0);
  values[1] = nan;
  values[2] = inf;
  view.points = 10;
  const Series buckets = series_of(run_of(values), "loss", view);
  CHECK(buckets.y.front() == doctest::Approx(1.0));
  CHECK(buckets.low.front() == 1.0);
  CHECK(buckets.high.front() == inf);
}

TEST_CASE("x is the update, the time since the beginning, or what the run recorded of its data") {
  RunRecord run = run_of({3, 1, 2}, 10);
  SeriesView view;
  view.x = "time";
  CHECK(series_of(run, "loss", view).x == std::vector<double>{5, 10, 15});
  view.x = "samples";
  CHECK(series_of(run, "loss", view).why == "the run did not record its samples");
  CHECK(series_of(run, "loss", view).x.empty());
  run.positions = {{10, 0.5, 320, 0}, {20, 1, 640, 0}};
  CHECK(series_of(run, "loss", view).x == std::vector<double>{320, 640});
  CHECK(series_of(run, "loss", view).y == std::vector<double>{3, 1});
  view.x = "epoch";
  CHECK(series_of(run, "loss", view).x == std::vector<double>{0.5, 1});
  view.x = "tokens";
  CHECK(!series_of(run, "loss", view).why.empty());
  CHECK(!series_of(run, "accuracy", view).why.empty());
}

TEST_CASE("times that go back, and updates beyond what a double tells apart, stay in order") {
  RunRecord run = run_of(std::vector<double>(50, 1.0));
  run.metrics["loss"][20].time = 0.0;
  SeriesView view;
  view.x = "time";
  view.points = 10;
  const Series series = series_of(run, "loss", view);
  CHECK(std::is_sorted(series.x.begin(), series.x.end()));
  CHECK(series.x.size() <= 10);
  for (RecordPoint& point : run.metrics["loss"]) {
    point.step = std::numeric_limits<int64_t>::max() - 50 + point.step;
  }
  view.x = "update";
  CHECK(series_of(run, "loss", view).x.size() <= 10);
}

TEST_SUITE_END();
