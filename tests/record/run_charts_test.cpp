#include "record/run_charts.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

TEST_SUITE_BEGIN("record/run_charts");

using namespace rondo;

namespace {

RunRecord run_of(const std::string& name) {
  RunRecord run;
  run.name = name;
  run.version = "0.2.0";
  run.status = RunStatus::Stopped;
  run.reason = "Ctrl-C";
  run.step = 20;
  run.begin = 100.0;
  run.end = 165.0;
  run.metrics["loss"] = {{10, 101, 0.5}, {20, 102, 0.25}};
  run.metrics["val/loss"] = {{20, 103, 0.75}};
  run.metrics["lr/0"] = {{20, 103, 0.1}};
  run.validations = {{20, 103, "val"}};
  run.higher_is_better["loss"] = false;
  run.saves = {{20, 104, "checkpoint_20.pt"}};
  return run;
}

}  // namespace

TEST_CASE("a chart has the lines of all runs that logged its metric") {
  RunRecord other = run_of("b");
  other.metrics.erase("val/loss");
  const std::vector<Chart> charts = charts_of({run_of("a"), other}, {"loss", "val/loss"});
  REQUIRE(charts.size() == 2);
  REQUIRE(charts[0].lines.size() == 2);
  CHECK(charts[0].lines[1].name == "b");
  CHECK(charts[0].lines[0].x == std::vector<double>{10, 20});
  CHECK(charts[0].lines[0].y == std::vector<double>{0.5, 0.25});
  CHECK(charts[1].lines.size() == 1);
}

TEST_CASE("metrics that are named alike but for the label of a validation share a chart") {
  RunRecord run = run_of("a");
  run.metrics["val/part/0"] = {{20, 103, 0.5}};
  const std::vector<Chart> charts = charts_of(run);
  REQUIRE(charts.size() == 3);
  CHECK(charts[0].title == "loss");
  CHECK(charts[0].lines.size() == 2);
  CHECK(charts[1].title == "lr/0");
  CHECK(charts[2].title == "part/0");
}

TEST_CASE("a long line keeps its extremes") {
  RunRecord run;
  for (int i = 0; i < 100000; ++i) {
    run.metrics["loss"].push_back({i, 0.0, i == 71234 ? 9.0 : i == 71235 ? -9.0 : 1.0});
  }
  const ChartLine line = charts_of(run)[0].lines[0];
  CHECK(line.x.size() < 5000);
  CHECK(std::is_sorted(line.x.begin(), line.x.end()));
  CHECK(*std::max_element(line.y.begin(), line.y.end()) == 9.0);
  CHECK(*std::min_element(line.y.begin(), line.y.end()) == -9.0);
}

TEST_CASE("a summary says how the run ended and what its metrics came to") {
  const std::string text = summary_of(run_of("a"));
  CHECK(text.rfind("# a\n", 0) == 0);
  CHECK(text.find("| status | stopped: Ctrl-C |") != std::string::npos);
  CHECK(text.find("| updates | 20 |") != std::string::npos);
  CHECK(text.find("| took | 0:01:05 |") != std::string::npos);
  CHECK(text.find("| loss | 0.25 | 0.25 at update 20 |") != std::string::npos);
  CHECK(text.find("| val/loss | 0.75 |  |") != std::string::npos);
  CHECK(text.find("`checkpoint_20.pt`, of update 20") != std::string::npos);
}

TEST_SUITE_END();
