// OptimizerMonitor, SystemMetricsMonitor, LogInputSummaries, SavePerformanceData, OpProfiler,
// FlopUtilization and VerifyNumerics.

#include <doctest/doctest.h>
#include <torch/types.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "callbacks/builtin/flop_utilization.h"
#include "callbacks/builtin/log_input_summaries.h"
#include "callbacks/builtin/memory_snapshot.h"
#include "callbacks/builtin/op_profiler.h"
#include "callbacks/builtin/optimizer_monitor.h"
#include "callbacks/builtin/save_performance_data.h"
#include "callbacks/builtin/system_metrics_monitor.h"
#include "callbacks/builtin/verify_numerics.h"
#include "core/error.h"
#include "core/file_system.h"
#include "core/json_reader.h"
#include "optim/adam.h"
#include "support/probe_callback.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

using Entries = std::vector<MemoryLogger::Entry>;

/// Six updates with the callback. \param more  called in order after it
Entries monitored(const TempDir& dir,
                  const Factory<Callback>& callback,
                  const std::string& mode,
                  const ProbeCallback::Options& more = {}) {
  Entries entries;
  MemoryLogger::Options memory;
  memory.entries = &entries;
  TrainerOptions options = tiny_options(dir / mode.c_str());
  options.backend.mode = mode;
  options.optimizer = use<Adam>({1e-2});
  options.callbacks = {callback, use<ProbeCallback>(more)};
  options.loggers = {use<MemoryLogger>(memory)};
  options.loop.max_steps = 6;
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train"));
  return entries;
}

std::string text_of(const std::filesystem::path& path) {
  return real_file_system()->read(path);
}

}  // namespace

TEST_SUITE_BEGIN("callbacks/builtin/monitors");

TEST_CASE("OptimizerMonitor logs the norms of gradients, parameters and moments") {
  const TempDir dir;
  double grads = 0.0;
  double params = 0.0;
  double moments = 0.0;
  ProbeCallback::Options probe;
  probe.before_optimizer_step = [&](Trainer&, Optimizer& optimizer) {
    grads = 0.0;
    for (const Parameter& parameter : optimizer.groups()[0].params) {
      grads += parameter.grad().square().sum().item<double>();
    }
  };
  probe.after_optimizer_step = [&](Trainer&, Optimizer& optimizer) {
    params = 0.0;
    moments = 0.0;
    for (Parameter& parameter : optimizer.groups()[0].params) {
      params += parameter.value.square().sum().item<double>();
      moments += parameter.state("exp_avg").square().sum().item<double>();
    }
  };
  const Entries eager = monitored(dir, use<OptimizerMonitor>(), "eager", probe);
  const auto last = [&](const char* name) { return values_of(eager, name).at(5).second; };
  CHECK(last("l2_norm/grad/global") == doctest::Approx(std::sqrt(grads)));
  CHECK(last("l2_norm/param/global") == doctest::Approx(std::sqrt(params)));
  CHECK(last("l2_norm/exp_avg/global") == doctest::Approx(std::sqrt(moments)));
  CHECK(values_of(eager, "l2_norm/grad/0.weight").size() == 6);
  const Entries traced = monitored(dir, use<OptimizerMonitor>(), "traced");
  CHECK(values_of(traced, "l2_norm/exp_avg/global") == values_of(eager, "l2_norm/exp_avg/global"));
  const TempDir other;
  const Entries global = monitored(other, use<OptimizerMonitor>({true}), "eager");
  CHECK(values_of(global, "l2_norm/grad/global").size() == 6);
  CHECK(values_of(global, "l2_norm/grad/0.weight").empty());
}

TEST_CASE("SystemMetricsMonitor logs shares and sizes that a machine can have") {
  for (const char* mode : {"eager", "traced"}) {
    const TempDir dir;
    const Entries entries = monitored(dir, use<SystemMetricsMonitor>(), mode);
    for (const char* share : {"system/memory_percent"}) {
      REQUIRE(values_of(entries, share).size() == 6);
      CHECK(values_of(entries, share).back().second > 0.0);
      CHECK(values_of(entries, share).back().second <= 100.0);
    }
    for (const auto& [update, percent] : values_of(entries, "system/cpu_percent")) {
      CHECK(percent >= 0.0);
      CHECK(percent <= 100.0);
    }
    CHECK(values_of(entries, "system/disk_free_gb").size() == 6);
    CHECK(values_of(entries, "system/process_cpu_percent").size() == 6);
    CHECK(values_of(entries, "system/load").size() == 6);
  }
}

TEST_CASE("LogInputSummaries logs mean, deviation and range of the batch") {
  std::vector<std::pair<int64_t, double>> means;
  for (const char* mode : {"eager", "traced"}) {
    const TempDir dir;
    std::vector<double> direct;
    ProbeCallback::Options probe;
    probe.train_batch_start = [&](Trainer&, const Batch& batch) {
      direct.push_back(batch["x"].mean().item<double>());
    };
    const Entries entries = monitored(dir, use<LogInputSummaries>(), mode, probe);
    const auto logged = values_of(entries, "input/x/mean");
    REQUIRE(logged.size() == 6);
    for (size_t i = 0; i < 6; ++i) {
      CHECK(logged[i].second == doctest::Approx(direct[i]));
    }
    CHECK(values_of(entries, "input/label/max").size() == 6);
    CHECK(values_of(entries, "input/x/min")[0].second <
          values_of(entries, "input/x/max")[0].second);
    CHECK(values_of(entries, "input/x/std")[0].second > 0.0);
  }
}

TEST_CASE("SavePerformanceData writes what a fit did as JSON") {
  for (const std::string mode : {"eager", "traced"}) {
    const TempDir dir;
    monitored(dir, use<SavePerformanceData>(), mode);
    const std::string text = text_of(dir / mode.c_str() / "logs/latest/performance.json");
    std::map<std::string, double> values;
    JsonReader json(text);
    json.object([&](const std::string& name) { values[name] = json.number().value_or(-1.0); });
    json.end();
    CHECK(values.at("total_updates") == 6.0);
    CHECK(values.at("total_samples") == 12.0);
    CHECK(values.at("samples_per_sec") > values.at("updates_per_sec"));
    CHECK(values.at("total_seconds") >= values.at("train_seconds"));
  }
}

TEST_CASE("OpProfiler writes a trace that names operators, and says when there is none") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.backend.mode = "traced";
  options.callbacks = {use<OpProfiler>({2})};
  options.loop.max_steps = 40;
  Trainer(options, quiet_log()).fit(tiny_loader("train"));
  size_t traces = 0;
  for (const auto& entry : std::filesystem::directory_iterator(dir / "run/logs/latest/profile")) {
    if (entry.path().extension() == ".json") {
      const std::string trace = text_of(entry.path());
      JsonReader json(trace);
      json.skip();
      json.end();
      CHECK(trace.find("\"ph\"") != std::string::npos);
      CHECK(trace.find("\"name\"") != std::string::npos);
      ++traces;
    }
  }
  CHECK(traces > 0);
  std::vector<std::string> warnings;
  options.model_dir = dir / "eager";
  options.backend.mode = "eager";
  Trainer(options, quiet_log(&warnings)).fit(tiny_loader("train"));
  REQUIRE(!warnings.empty());
  CHECK(warnings.back().find("OpProfiler") != std::string::npos);
  CHECK_THROWS_AS(OpProfiler({0}), UsageError);
  CHECK_THROWS_AS(OpProfiler({1, -1}), UsageError);
  const TimingSchedule schedule = OpProfiler({2, 3, 4}).instruments().timing;
  CHECK(schedule.wait == 3);
  CHECK(schedule.warmup == 4);
  CHECK(schedule.replays() == 3 + 4 + 2 * 2);
}

TEST_CASE("FlopUtilization logs rates and shares of what this machine was measured to do") {
  const TempDir dir;
  const Entries entries = monitored(dir, use<FlopUtilization>(), "traced");
  const auto rates = values_of(entries, "throughput/flops_per_sec");
  REQUIRE(!rates.empty());
  for (const auto& [update, rate] : rates) {
    CHECK(rate > 0.0);
  }
  for (const char* share : {"throughput/flops_share", "throughput/bandwidth_share"}) {
    const auto shares = values_of(entries, share);
    REQUIRE(shares.size() == rates.size());
    CHECK(shares.back().second > 0.0);
  }
  CHECK(values_of(monitored(dir, use<FlopUtilization>(), "eager"), "throughput/flops_per_sec")
            .empty());
}

TEST_CASE("VerifyNumerics writes the error of each operator, and changes no bit of the run") {
  const TempDir dir;
  const Entries entries = monitored(dir, use<VerifyNumerics>(), "traced");
  const TempDir other;
  const Entries plain = monitored(other, use<OptimizerMonitor>(), "traced");
  CHECK(values_of(entries, "loss") == values_of(plain, "loss"));
  size_t tables = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(dir / "traced/logs/latest/numerics")) {
    const std::string text = text_of(entry.path());
    if (entry.path().extension() == ".txt") {
      CHECK(text.find(" 0 differ") != std::string::npos);
      CHECK(text.find(" by operator\n") != std::string::npos);
      ++tables;
    } else {
      JsonReader json(text);
      json.skip();
      json.end();
    }
  }
  CHECK(tables > 0);
}

TEST_CASE("MemorySnapshot lists what takes memory, also when it runs out") {
  for (const std::string mode : {"eager", "traced"}) {
    const TempDir dir;
    ProbeCallback::Options probe;
    probe.train_batch_start = [](Trainer& trainer, const Batch&) {
      if (trainer.state().global_step() == 4) {
        throw std::bad_alloc();
      }
    };
    CHECK_THROWS_AS(monitored(dir, use<MemorySnapshot>({3}), mode, probe), HookError);
    for (const char* file : {"memory_snapshot.txt", "out_of_memory.txt"}) {
      const std::string text = text_of(dir / mode.c_str() / "logs/latest" / file);
      CHECK(text.find("  process\n") != std::string::npos);
      CHECK(text.find("              48  parameter 0.weight\n") != std::string::npos);
      CHECK(text.find("exp_avg of 0.weight\n") != std::string::npos);
    }
  }
}

TEST_SUITE_END();
