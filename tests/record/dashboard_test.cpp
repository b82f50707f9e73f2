// The dashboard as text, drawn from records, and its keys.

#include "record/dashboard.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

using namespace rondo;

TEST_SUITE_BEGIN("record/dashboard");

namespace {

RunRecord a_run() {
  RunRecord run;
  run.name = "glyphs";
  run.status = RunStatus::Running;
  run.step = 40;
  run.updates = 100;
  run.begin = 10.0;
  run.end = 75.0;
  for (int step = 1; step <= 40; ++step) {
    run.metrics["loss"].push_back({step, 10.0 + step, 1.0 / step});
    run.metrics["system/cpu_percent"].push_back({step, 10.0 + step, 50.0});
  }
  run.metrics["val/loss"] = {{20, 30.0, 0.3}, {40, 50.0, 0.2}};
  run.validations = {{20, 30.0, "val"}, {40, 50.0, "val"}};
  run.metrics["val/accuracy"] = {{20, 30.0, 0.8}, {40, 50.0, 0.9}};
  return run;
}

std::string text_of(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    text += line + "\n";
  }
  return text;
}

int width_of(const std::string& line) {
  return static_cast<int>(std::count_if(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::vector<DashboardKey> keys_in(std::string_view input) {
  std::vector<DashboardKey> keys;
  while (!input.empty()) {
    keys.push_back(take_key(input));
  }
  return keys;
}

}  // namespace

TEST_CASE("curves of training and validation share a picture; the frame fits any screen") {
  const RunRecord run = a_run();
  const std::string text = text_of(dashboard_lines(run, {}, {}, 80, 40, false));
  CHECK(text.find("glyphs  running") == 0);
  CHECK(text.find("40/100 updates  0:01:05") != std::string::npos);
  CHECK(text.find("[1 metrics]") != std::string::npos);
  CHECK(text.find("- loss 0.025") != std::string::npos);
  CHECK(text.find("- val/loss 0.2") != std::string::npos);
  CHECK(text.find("- val/accuracy 0.9") != std::string::npos);
  CHECK(text.find("cpu_percent") == std::string::npos);
  for (const auto& [columns, rows] : {std::pair(80, 40), {200, 60}, {30, 10}, {8, 5}, {1, 1}}) {
    CAPTURE(columns);
    const std::vector<std::string> lines = dashboard_lines(run, {"log"}, {}, columns, rows, false);
    CHECK(lines.size() >= static_cast<size_t>(std::min(rows, 2)));
    CHECK(lines.size() <= static_cast<size_t>(std::max(rows, 2)));
    for (const std::string& line : lines) {
      CHECK(width_of(line) <= columns);
    }
  }
}

TEST_CASE("what a run and its log hold cannot steer the terminal") {
  const std::string evil = "\x1b]0;title\x07\x1b[2Jm\xC2\x9B";
  RunRecord run = a_run();
  run.name = evil;
  run.reason = evil;
  run.metrics = {{evil, {{1, 1.0, 1.0}}}};
  DashboardView view;
  for (const DashboardTab tab : {DashboardTab::Metrics, DashboardTab::Log}) {
    view.tab = tab;
    const std::string text = text_of(dashboard_lines(run, {evil}, view, 80, 40, false));
    CHECK(text.find("?]0;title??[2Jm?") != std::string::npos);
    CHECK(text.find_first_of("\x1b\x07") == std::string::npos);
    CHECK(text.find("\xC2\x9B") == std::string::npos);
  }
}

TEST_CASE("tabs show system metrics and the end of the log") {
  const RunRecord run = a_run();
  DashboardView view;
  view.tab = DashboardTab::System;
  const std::string system = text_of(dashboard_lines(run, {}, view, 80, 30, false));
  CHECK(system.find("system/cpu_percent") != std::string::npos);
  CHECK(system.find("val/loss") == std::string::npos);
  CHECK(
      text_of(dashboard_lines(RunRecord(), {}, view, 80, 30, false)).find("SystemMetricsMonitor") !=
      std::string::npos);
  view.tab = DashboardTab::Log;
  std::vector<std::string> log;
  for (int i = 0; i < 50; ++i) {
    log.push_back("line " + std::to_string(i));
  }
  const std::string newest = text_of(dashboard_lines(run, log, view, 80, 14, false));
  CHECK(newest.find("line 49") != std::string::npos);
  CHECK(newest.find("line 39") == std::string::npos);
  view.first = 10;
  const std::string older = text_of(dashboard_lines(run, log, view, 80, 14, false));
  CHECK(older.find("line 39") != std::string::npos);
  CHECK(older.find("line 40") == std::string::npos);
  view.first = 1000;
  CHECK(text_of(dashboard_lines(run, log, view, 80, 14, false)).find("line 0") !=
        std::string::npos);
}

TEST_CASE("control characters of a log do not reach the terminal") {
  DashboardView view;
  view.tab = DashboardTab::Log;
  const std::string text = text_of(dashboard_lines(a_run(),
                                                   {"a\rb\x07"
                                                    "c"},
                                                   view,
                                                   80,
                                                   14,
                                                   false));
  CHECK(text.find("a?b?c") != std::string::npos);
}

TEST_CASE("zoom halves what is shown of the curves, towards their end") {
  DashboardView view;
  CHECK(text_of(dashboard_lines(a_run(), {}, view, 80, 40, false)).find("1  ") !=
        std::string::npos);
  view.zoom = 1;
  const std::string half = text_of(dashboard_lines(a_run(), {}, view, 80, 40, false));
  CHECK(half.find("\n            20  ") != std::string::npos);
}

TEST_CASE("keys are read from what terminals send, unknown sequences as a whole") {
  CHECK((keys_in("\x1b[A\tq") ==
         std::vector<DashboardKey>{DashboardKey::Up, DashboardKey::NextTab, DashboardKey::Quit}));
  CHECK((keys_in("\x1b[15~3") ==
         std::vector<DashboardKey>{DashboardKey::None, DashboardKey::LogTab}));
  CHECK((keys_in("\x1b[1;") == std::vector<DashboardKey>{DashboardKey::None}));
  CHECK((keys_in("z+") == std::vector<DashboardKey>{DashboardKey::None, DashboardKey::ZoomIn}));
}

TEST_CASE("a stop is asked back, and any key but y drops it") {
  DashboardView view;
  CHECK((press(view, DashboardKey::StopAndSave) == DashboardRequest::None));
  const std::string asked = dashboard_lines(a_run(), {}, view, 80, 20, false).back();
  CHECK(asked.find("save?") != std::string::npos);
  CHECK((press(view, DashboardKey::Yes) == DashboardRequest::StopAndSave));
  press(view, DashboardKey::StopNow);
  CHECK((press(view, DashboardKey::Quit) == DashboardRequest::None));
  CHECK((press(view, DashboardKey::Yes) == DashboardRequest::None));
  CHECK((press(view, DashboardKey::Quit) == DashboardRequest::Quit));
}

TEST_CASE("keys change tab, zoom and place") {
  DashboardView view;
  press(view, DashboardKey::Down);
  CHECK(view.first == 1);
  press(view, DashboardKey::NextTab);
  CHECK((view.tab == DashboardTab::System));
  CHECK(view.first == 0);
  press(view, DashboardKey::ZoomOut);
  CHECK(view.zoom == 0);
  press(view, DashboardKey::ZoomIn);
  CHECK(view.zoom == 1);
  press(view, DashboardKey::LogTab);
  press(view, DashboardKey::Up);
  CHECK(view.first == 1);
}

TEST_SUITE_END();
