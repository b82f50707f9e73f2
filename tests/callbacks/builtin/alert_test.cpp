#include "callbacks/builtin/alert.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <vector>

#include "callbacks/builtin/notification.h"
#include "core/error.h"
#include "support/probe_callback.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// Keeps what it has to tell.
struct AlertKeeper final : Notification {
  struct Options {
    std::vector<std::string>* messages = nullptr;
  };

  explicit AlertKeeper(const Options& o) : options(o) {}

  void send(Trainer&, const std::string& text) override {
    options.messages->push_back(text.substr(0, text.find('\n')));
  }

  Options options;
};

/// A run that logs the values as "score", one an update, and what it was notified of.
struct Scripted {
  FitResult result;
  std::vector<std::string> alerts;
};

Scripted scripted(const TempDir& dir,
                  const std::vector<double>& values,
                  const Alert::Options& alert,
                  const char* mode = "eager",
                  int64_t steps = 0) {
  std::vector<std::string> messages;
  ProbeCallback::Options probe;
  probe.train_batch_end = [&](Trainer& trainer) {
    const auto update = static_cast<size_t>(trainer.state().global_step());
    trainer.log_metrics({{"score", values.at(update - 1)}});
  };
  TrainerOptions options = tiny_options(dir / "run");
  options.backend.mode = mode;
  options.callbacks = {use<ProbeCallback>(probe), use<Alert>(alert), use<AlertKeeper>({&messages})};
  options.loop.max_steps = steps > 0 ? steps : static_cast<int64_t>(values.size());
  options.checkpoint.steps = 2;
  Trainer trainer(options, quiet_log());
  Scripted run;
  run.result = trainer.fit(tiny_loader("train"));
  std::copy_if(messages.begin(),
               messages.end(),
               std::back_inserter(run.alerts),
               [](const std::string& text) { return text.rfind("alert", 0) == 0; });
  return run;
}

Alert::Options when(const std::string& rule) {
  Alert::Options options;
  options.metric = "score";
  options.when = rule;
  options.direction = "max";
  return options;
}

}  // namespace

TEST_SUITE_BEGIN("callbacks/builtin/alert");

TEST_CASE("an alert is told once, until the metric is within its bounds again") {
  for (const char* mode : {"eager", "traced"}) {
    CAPTURE(mode);
    const TempDir dir;
    const Scripted run = scripted(dir, {1, 4, 5, 2, 3, 6}, when("> 3.0"), mode);
    REQUIRE(run.alerts.size() == 2);
    CHECK(run.alerts[0] == "alert at update 2: score = 4 (> 3.0)");
    CHECK(run.alerts[1].rfind("alert at update 6", 0) == 0);
    CHECK(run.result.steps == 6);
  }
}

TEST_CASE("each comparison, numbers that are not finite, and missing improvement") {
  const auto first = [](const std::vector<double>& values, const char* rule) {
    const TempDir dir;
    const Scripted run = scripted(dir, values, when(rule));
    return run.alerts.empty() ? "" : run.alerts.front().substr(0, 17);
  };
  CHECK(first({1, 3, 4}, ">= 3") == "alert at update 2");
  CHECK(first({5, 3, 2}, "<3") == "alert at update 3");
  CHECK(first({5, 3, 2}, "<= 3") == "alert at update 2");
  CHECK(first({1, 2, INFINITY}, "not finite") == "alert at update 3");
  CHECK(first({1, 2, NAN}, "> 3").empty());
  CHECK(first({1, 3, 2, 2, 2}, "no improvement for 2") == "alert at update 4");
  CHECK(first({1, 3, 2, 4, 2}, "no improvement for 2").empty());
}

TEST_CASE("an alert can stop the run, which then saves") {
  const TempDir dir;
  Alert::Options options = when("> 3");
  options.then = "stop";
  const Scripted run = scripted(dir, {1, 2, 4, 1, 1}, options);
  CHECK(run.result.steps == 3);
  CHECK(run.result.stop_reason.find("Alert") != std::string::npos);
  CHECK(run.result.last_checkpoint.has_value());
}

TEST_CASE("a run that is resumed does not tell again what goes on") {
  const TempDir dir;
  const std::vector<double> values = {1, 4, 4, 4, 1, 4};
  CHECK(scripted(dir, values, when("> 3"), "eager", 2).alerts.size() == 1);
  const Scripted rest = scripted(dir, values, when("> 3"));
  REQUIRE(rest.alerts.size() == 1);
  CHECK(rest.alerts[0].rfind("alert at update 6", 0) == 0);
}

TEST_CASE("a program can tell an alert, but not inside a step") {
  const TempDir dir;
  std::vector<std::string> lines;
  TrainerOptions options = tiny_options(dir / "run");
  options.loop.max_steps = 1;
  Trainer trainer(options, quiet_log(&lines));
  trainer.alert(AlertLevel::Error, "the disk is hot");
  REQUIRE(!lines.empty());
  CHECK(lines.back() == "alert: the disk is hot");
  TrainerOptions other = tiny_options(dir / "other");
  Trainer* running = nullptr;
  ProbeCallback::Options probe;
  probe.after_forward = [&](Outputs&) { running->alert(AlertLevel::Warning, "inside"); };
  other.callbacks = {use<ProbeCallback>(probe)};
  Trainer inside(other, quiet_log());
  running = &inside;
  CHECK_THROWS_AS(inside.fit(tiny_loader("train")), HookError);
}

TEST_CASE("wrong rules and words are told when the options are made") {
  for (const char* rule :
       {"", "3", "> x", "> ", "> inf", "no improvement for 0", "no improvement for 1.5", "=> 3"}) {
    CAPTURE(rule);
    CHECK_THROWS_AS(Alert(when(rule)), UsageError);
  }
  Alert::Options options = when("> 3");
  options.level = "loud";
  CHECK_THROWS_AS(Alert{options}, UsageError);
  options = when("> 3");
  options.then = "cry";
  CHECK_THROWS_AS(Alert{options}, UsageError);
  options = when("> 3");
  options.metric = "";
  CHECK_THROWS_AS(Alert{options}, UsageError);
}

TEST_CASE("a metric that nothing logs is warned of once, with the name that is near") {
  for (const std::string metric : {"val/losss", "scoree", "val/loss", "score"}) {
    CAPTURE(metric);
    const bool is_wrong = metric == "val/losss" || metric == "scoree";
    const TempDir dir;
    std::vector<std::string> lines;
    size_t at_second = 0;  // lines when the second stage begins
    ProbeCallback::Options probe;
    probe.train_batch_end = [&](Trainer& trainer) {
      trainer.log_metrics({{"score", 1.0}});
      at_second = trainer.state().global_step() == 3 ? lines.size() : at_second;
    };
    Alert::Options alert;
    alert.metric = metric;
    alert.when = "> 1e9";
    TrainerOptions options = tiny_options(dir / "run");
    options.callbacks = {use<Alert>(alert), use<ProbeCallback>(probe)};
    options.loop.max_steps = 4;
    options.loop.eval_frequency = 2;
    std::vector<MemoryLogger::Entry> entries;
    MemoryLogger::Options memory;
    memory.entries = &entries;
    options.loggers = {use<MemoryLogger>(memory)};
    Trainer(options, quiet_log(&lines)).fit(tiny_loader("train"), {tiny_loader("val")});
    const auto is_it = [](const std::string& line) {
      return line.find("so it never alerts") != std::string::npos;
    };
    CHECK(std::count_if(lines.begin(), lines.end(), is_it) == (is_wrong ? 1 : 0));
    if (is_wrong) {
      const std::string right = metric.substr(0, metric.size() - 1);
      const auto line = std::find_if(lines.begin(), lines.end(), is_it);
      CHECK(line->find("did you mean \"" + right + "\"?") != std::string::npos);
      const bool is_told_after_validation = metric.rfind("val/", 0) == 0;
      CHECK((line < lines.begin() + static_cast<std::ptrdiff_t>(at_second)) ==
            is_told_after_validation);
    }
  }
}

TEST_SUITE_END();
