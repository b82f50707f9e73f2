// What a fit writes into its record, as its readers see it.

#include "loggers/record_logger.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/file_system.h"
#include "loggers/tiny_fit.h"
#include "record/run_record.h"
#include "support/probe_callback.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

TEST_SUITE_BEGIN("loggers/record_logger");

namespace {

/// 12 updates that validate after each third and save after each sixth.
TrainerOptions recorded_options(const std::filesystem::path& run) {
  TrainerOptions options = tiny_options(run);
  options.loop.max_steps = 12;
  options.loop.eval_frequency = 3;
  options.checkpoint.steps = 6;
  options.loggers = {use<RecordLogger>()};
  options.config_text = "[trainer.init]\nseed = 7\n";
  return options;
}

/// Calls `act` before the first batch after `update`.
TrainerOptions with_act_at(TrainerOptions options,
                           int64_t update,
                           const std::function<void(Trainer&)>& act) {
  ProbeCallback::Options probe;
  probe.train_batch_start = [=](Trainer& trainer, const Batch&) {
    if (trainer.state().global_step() == update) {
      act(trainer);
    }
  };
  options.callbacks.push_back(use<ProbeCallback>(probe));
  return options;
}

[[noreturn]] void die(Trainer&) {
  throw std::runtime_error("dies of \"quotes\"");
}

/// Update and value.
std::vector<std::pair<int64_t, double>> values_of(const RunRecord& run, const std::string& metric) {
  std::vector<std::pair<int64_t, double>> values;
  for (const RecordPoint& point : run.metrics.at(metric)) {
    values.emplace_back(point.step, point.value);
  }
  return values;
}

}  // namespace

TEST_CASE("alerts, finished validations and the process of a fit are recorded") {
  const TempDir dir;
  fit(with_act_at(recorded_options(dir / "run"), 4, [](Trainer& trainer) {
    trainer.alert(AlertLevel::Error, "say \"it\"");
  }));
  const RunRecord run = read_record(dir / "run");
  REQUIRE(run.alerts.size() == 1);
  CHECK(run.alerts[0].step == 4);
  CHECK(run.alerts[0].level == "error");
  CHECK(run.alerts[0].text == "say \"it\"");
  REQUIRE(run.validations.size() == 4);
  CHECK(run.validations[1].step == 6);
  CHECK(run.validations[1].label == "val");
  CHECK(run.process == ::getpid());
  CHECK_FALSE(run.host.empty());
}

TEST_CASE("a fit records its config, values, directions, saves and end") {
  const TempDir dir;
  fit(recorded_options(dir / "run"));
  const RunRecord run = read_record(dir / "run");
  CHECK(run.name == "run");
  CHECK(run.status == RunStatus::Done);
  CHECK(run.sessions == 1);
  CHECK(run.step == 12);
  CHECK(run.updates == 12);
  CHECK(run.config.at("trainer.init.seed") == "7");
  CHECK(run.metrics.at("loss").size() == 12);
  CHECK(run.metrics.at("val/loss").size() == 4);
  CHECK_FALSE(run.higher_is_better.at("val/loss"));
  CHECK(run.higher_is_better.at("val/accuracy"));
  REQUIRE(run.saves.size() == 2);
  CHECK(run.saves[1].path == "checkpoint_12.pt");
  CHECK(run.saves[1].step == 12);
  CHECK(run.damaged_lines == 0);
}

TEST_CASE("the record names the run as the option run_name does") {
  const TempDir dir;
  TrainerOptions options = recorded_options(dir / "run");
  options.run_name = "third try";
  fit(options);
  CHECK(read_record(dir / "run").name == "third try");
}

TEST_CASE("each log step says how much of the data the run has seen") {
  const TempDir dir;
  TrainerOptions options = recorded_options(dir / "run");
  std::vector<std::pair<int64_t, int64_t>> samples;  // by update
  ProbeCallback::Options probe;
  probe.train_batch_end = [&](Trainer& trainer) {
    const Timestamp& now = trainer.state().timestamp;
    samples.emplace_back(now.update, now.sample);
  };
  options.callbacks.push_back(use<ProbeCallback>(probe));
  fit(options);
  const RunRecord run = read_record(dir / "run");
  REQUIRE(run.positions.size() == samples.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    CHECK(run.positions[i].step == samples[i].first);
    CHECK(run.positions[i].samples == static_cast<double>(samples[i].second));
    CHECK((i == 0 || run.positions[i].epoch > run.positions[i - 1].epoch));
  }
}

TEST_CASE("a pass that ends early is an epoch for the record, too") {
  const TempDir dir;
  TrainerOptions options = recorded_options(dir / "run");
  options.loop.train_subset_num_batches = 2;
  fit(options);
  const RunRecord run = read_record(dir / "run");
  REQUIRE(run.positions.size() == 12);
  CHECK(run.positions[0].epoch == 0.5);
  CHECK(run.positions[1].epoch == 1.0);
  CHECK(run.positions[2].epoch == 1.5);
}

TEST_CASE("a fit ends with a summary and its curves") {
  const TempDir dir;
  fit(recorded_options(dir / "run"));
  const std::string summary = real_file_system()->read(dir.path() / "run/logs/latest/summary.md");
  CHECK(summary.find("| status | done |") != std::string::npos);
  CHECK(summary.find("| updates | 12 of 12 |") != std::string::npos);
  CHECK(summary.find("the newest is `checkpoint_12.pt`") != std::string::npos);
  const std::string svg = real_file_system()->read(dir.path() / "run/logs/latest/results.svg");
  CHECK(svg.find(">val/accuracy<") != std::string::npos);
}

TEST_CASE("the summary of a fit names the steps that could not be recorded") {
  const TempDir dir;
  TrainerOptions options = recorded_options(dir / "run");
  options.backend.mode = "traced";
  options.backend.on_refusal = "eager";
  ProbeCallback::Options probe;
  probe.after_forward = [](Outputs& outputs) { (void)outputs["loss"].item<double>(); };
  options.callbacks.push_back(use<ProbeCallback>(probe));
  fit(options);
  const std::string summary = real_file_system()->read(dir.path() / "run/logs/latest/summary.md");
  CHECK(summary.find("Step train/update ran as it is written") != std::string::npos);
}

TEST_CASE("a run that died and went on reads as one that was not interrupted") {
  const TempDir dir;
  fit(recorded_options(dir / "whole"));
  CHECK_THROWS(fit(with_act_at(recorded_options(dir / "run"), 10, die)));
  const RunRecord failed = read_record(dir / "run");
  CHECK(failed.status == RunStatus::Failed);
  CHECK(failed.reason.find("dies of \"quotes\"") != std::string::npos);
  CHECK(failed.step == 10);

  fit(recorded_options(dir / "run"));
  const RunRecord run = read_record(dir / "run");
  const RunRecord whole = read_record(dir / "whole");
  CHECK(run.status == RunStatus::Done);
  CHECK(run.sessions == 2);
  REQUIRE(run.metrics.size() == whole.metrics.size());
  for (const auto& [metric, points] : whole.metrics) {
    CAPTURE(metric);
    CHECK(values_of(run, metric) == values_of(whole, metric));
  }
  CHECK(run.saves.size() == 2);
}

TEST_CASE("a fit that begins again in the same directory replaces the record of the one before") {
  const TempDir dir;
  fit(recorded_options(dir / "run"));
  TrainerOptions shorter = recorded_options(dir / "run");
  shorter.loop.max_steps = 3;
  fit(shorter, LoadFrom::nothing());
  const RunRecord run = read_record(dir / "run");
  CHECK(run.step == 3);
  CHECK(run.updates == 3);
  CHECK(run.metrics.at("loss").size() == 3);
}

TEST_CASE("a run that is stopped says by whom, and while it goes on it is running") {
  const TempDir dir;
  RunStatus seen = RunStatus::Crashed;
  fit(with_act_at(recorded_options(dir / "run"), 4, [&](Trainer& trainer) {
    seen = read_record(dir / "run").status;
    trainer.request_stop("a test");
  }));
  CHECK(seen == RunStatus::Running);
  const RunRecord run = read_record(dir / "run");
  CHECK(run.status == RunStatus::Stopped);
  CHECK(run.reason == "a test");
}

TEST_CASE("a save at the very end of a fit is recorded") {
  const TempDir dir;
  TrainerOptions options = recorded_options(dir / "run");
  ProbeCallback::Options probe;
  probe.validate_start = [](Trainer& trainer) { trainer.request_stop("a test"); };
  options.callbacks.push_back(use<ProbeCallback>(probe));
  fit(options);
  const RunRecord run = read_record(dir / "run");
  CHECK(run.status == RunStatus::Stopped);
  REQUIRE(run.saves.size() == 1);
  CHECK(run.saves[0].step == 3);
}

TEST_CASE("a save in the background is recorded at the update that it holds") {
  const TempDir dir;
  TrainerOptions options = recorded_options(dir / "run");
  options.checkpoint.async = true;
  fit(options);
  const RunRecord run = read_record(dir / "run");
  REQUIRE(run.saves.size() == 2);
  CHECK(run.saves[0].step == 6);
  CHECK(run.saves[1].step == 12);
}

TEST_CASE("a further fit of one Trainer is a session, a validation alone is none") {
  const TempDir dir;
  TrainerOptions options = recorded_options(dir / "run");
  options.loop.max_steps = 3;
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train"), {});
  trainer.validate(tiny_loader("val"));
  const RunRecord once = read_record(dir / "run");
  CHECK(once.sessions == 1);
  CHECK(once.metrics.count("val/loss") == 0);
  trainer.fit(tiny_loader("train"), {});
  const RunRecord twice = read_record(dir / "run");
  CHECK(twice.sessions == 2);
  CHECK(twice.status == RunStatus::Done);
  CHECK(twice.metrics.at("loss").size() == once.metrics.at("loss").size());
}

TEST_CASE("a value that is not finite is recorded as it is") {
  const TempDir dir;
  const double infinite = std::numeric_limits<double>::infinity();
  TrainerOptions options = recorded_options(dir / "run");
  ProbeCallback::Options probe;
  probe.train_batch_end = [&](Trainer& trainer) {
    trainer.log_metrics({{"a", -infinite}, {"b", std::nan("")}, {"c", int64_t{3}}, {"d", "text"}});
  };
  options.callbacks.push_back(use<ProbeCallback>(probe));
  fit(options);
  const RunRecord run = read_record(dir / "run");
  CHECK(run.metrics.at("a")[0].value == -infinite);
  CHECK(std::isnan(run.metrics.at("b")[0].value));
  CHECK(run.metrics.at("c")[0].value == 3);
  CHECK(run.metrics.count("d") == 0);
  CHECK(run.damaged_lines == 0);
}

TEST_SUITE_END();
