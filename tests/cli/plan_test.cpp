#include <ATen/Parallel.h>
#include <doctest/doctest.h>
#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "callbacks/early_exit_callback.h"
#include "callbacks/notify_command.h"
#include "callbacks/threshold_stopper.h"
#include "cli/cli_main.h"
#include "cli/load_run.h"
#include "core/available_cores.h"
#include "core/error.h"
#include "loops/run_schedule_callback.h"
#include "optim/lr_schedulers.h"
#include "optim/sequential_lr.h"
#include "support/probe_callback.h"
#include "support/temp_dir.h"
#include "trainer/rehearsal.h"
#include "trainer/run_memory.h"
#include "trainer/trainer.h"

TEST_SUITE_BEGIN("cli/plan");

using namespace rondo;
using rondo::test::ProbeCallback;
using rondo::test::TempDir;

namespace {

int run(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "rondo");
  std::vector<char*> pointers;
  for (std::string& argument : arguments) {
    pointers.push_back(argument.data());
  }
  return cli_main(static_cast<int>(pointers.size()), pointers.data());
}

std::string write_run(const TempDir& dir, const std::string& sizes) {
  const std::filesystem::path path = dir / "run.toml";
  std::ofstream(path) << "[trainer.init]\nmodel_dir = \"" + (dir / "run").string() +
                             "\"\nseed = 1\nmodel = { name = \"Mlp\", sizes = " + sizes +
                             " }\n"
                             "loop = { max_steps = 2 }\n"
                             "loggers = [{ ProgressLogger = false }]\n"
                             "[trainer.init.optimizer.Adam]\nlr = 0.001\n"
                             "[trainer.fit]\ntrain_dataloader = { dataset = \"Glyphs\", size = 96, "
                             "batch_size = 16, prefetch = 0 }\n";
  return path.string();
}

RunConfig load(const std::string& config, const std::vector<std::string>& overrides = {}) {
  static Registries registries;
  static const bool is_filled = (register_builtins(registries), true);
  (void)is_filled;
  CommandLine line;
  line.config = config;
  line.overrides = overrides;
  return load_run(line, registries).front();
}

/// Whatever its length, a run is over after one update.
class OneUpdatePlan final : public RunPlan {
 public:
  using RunPlan::RunPlan;

  bool is_over(const Timestamp& time) const override { return time.update >= 1; }

  bool ends_stretch(const Timestamp&, const Timestamp& after) const override {
    return is_over(after);
  }
};

class OneUpdate final : public RunScheduleCallback {
 protected:
  std::unique_ptr<RunPlan> make_plan(const LoopOptions& options,
                                     const Timestamp& start,
                                     std::optional<int64_t> updates_per_epoch) const override {
    return std::make_unique<OneUpdatePlan>(options, start, updates_per_epoch);
  }
};

void check_near(int64_t grown_by, const RunMemory& memory, int64_t unpredicted = 0) {
  CAPTURE(grown_by);
  CAPTURE(memory.peak);
  const auto tolerance = std::max<int64_t>(4 << 20, grown_by / 50);
  CHECK(grown_by >= memory.peak - tolerance);
  CHECK(grown_by <= memory.peak + tolerance + unpredicted);
}

void check_peak(const Rehearsal& rehearsal, RunConfig run, int64_t unpredicted = 0) {
  run.fit->train = rehearsal.train;
  check_near(rehearsal.grown_by, memory_of(rehearsal.steps, run), unpredicted);
}

/// What operators may take inside beyond the prediction: where a processor has no bf16 arithmetic,
/// libraries sum a bf16 product in a float32 buffer of the result's size.
int64_t inside_operators(const RunConfig& run) {
  std::ifstream file("/proc/cpuinfo");
  const std::string processor{std::istreambuf_iterator<char>(file), {}};
  const bool has_bf16 = processor.find("bf16") != std::string::npos;
  constexpr int64_t kLargestProduct = 2000 * 2000;
  return run.init.precision.dtype == "bf16" && !has_bf16 ? 4 * kLargestProduct : 0;
}

bool is_sanitized() {
#if defined(__SANITIZE_ADDRESS__)
  return true;
#else
  return false;
#endif
}

}  // namespace

TEST_CASE("the memory that a plan predicts is what training takes") {
  if (is_sanitized()) {
    MESSAGE("skipped: the sanitizer keeps what is freed");
    return;
  }
  // What is freed goes back to the system at once, so that holes in the heap do not count.
  REQUIRE(::mallopt(M_MMAP_THRESHOLD, 128 * 1024) == 1);
  const TempDir dir;
  const std::string config = write_run(dir, "[784, 2048, 2048, 10]");
  const RunConfig run = load(config);
  rehearse_all_steps(run);  // libraries keep memory of their own from their first use
  const Rehearsal rehearsal = rehearse_all_steps(run);
  const RunMemory memory = memory_of(rehearsal.steps, run);
  const int64_t parameters = 4 * (784 * 2048 + 2048 + 2048 * 2048 + 2048 + 2048 * 10 + 10);
  CHECK(memory.state.at("model") == parameters);
  CHECK(memory.state.at("optimizer state") >= 2 * parameters);
  CHECK(memory.state.at("optimizer state") <= 2 * parameters + 1024);
  CHECK(memory.inputs == 16 * 784 * 4 + 16 * 8);
  CHECK(memory.modules.size() == 3);
  check_peak(rehearsal, run);
}

TEST_CASE("the predicted peak is that of the moment that needs most, whatever the run does") {
  if (is_sanitized()) {
    MESSAGE("skipped: the sanitizer keeps what is freed");
    return;
  }
  REQUIRE(::mallopt(M_MMAP_THRESHOLD, 128 * 1024) == 1);
  const std::string init = "trainer.init.";
  const std::string accumulates = init + "loop.grad_accum_steps=3";
  const std::string is_unverified = init + "backend.verify=off";
  const std::string explains = init + "backend.on_nan=explain";
  const std::string bf16 = init + "precision.dtype=bf16";
  const std::string is_sparse = init + "sparsity.sparsity=0.5";
  const std::string short_group = "trainer.fit.train_dataloader.size=64";
  const std::string is_long = init + "loop.max_steps=99";
  const std::string loader = "trainer.fit.train_dataloader={ dataset = \"Glyphs\", prefetch = 0, ";
  // With a short group and batch at the end of a long pass, and of one that is a single group.
  const std::string large_batches = loader + "size = 2656, batch_size = 256 }";
  const std::string one_short_group = loader + "size = 1100, batch_size = 512 }";
  const std::vector<std::vector<std::string>> runs = {
      {is_unverified},
      {accumulates},
      {accumulates, is_unverified},
      {accumulates, short_group},
      {is_long, large_batches},
      {is_long, accumulates, is_unverified, large_batches},
      {accumulates, one_short_group},
      {explains},
      {explains, accumulates},
      {explains, is_unverified},
      {is_sparse},
      {is_sparse, accumulates},
      {bf16},
      {bf16, accumulates},
      {bf16, accumulates, is_unverified}};
  for (const std::vector<std::string>& overrides : runs) {
    std::string what;
    for (const std::string& assignment : overrides) {
      what += assignment + ' ';
    }
    CAPTURE(what);
    const TempDir dir;
    const RunConfig run = load(write_run(dir, "[784, 2000, 2000, 10]"), overrides);
    rehearse_all_steps(run);
    const Rehearsal rehearsal = rehearse_all_steps(run);
    check_peak(rehearsal, run, inside_operators(run));
  }
}

TEST_CASE("the predicted peak of convolutions, with batches made ahead, and without the data set") {
  if (is_sanitized()) {
    MESSAGE("skipped: the sanitizer keeps what is freed");
    return;
  }
  REQUIRE(::mallopt(M_MMAP_THRESHOLD, 128 * 1024) == 1);
  const std::string loader = "trainer.fit.train_dataloader.";

  struct Case {
    std::string verify, size, batch_size, prefetch;
  };

  for (const Case& c : {Case{"first", "8192", "512", "4"},
                        Case{"off", "8192", "512", "4"},
                        Case{"off", "2048", "1024", "8"}}) {  // several passes are made ahead
    CAPTURE(c.verify);
    CAPTURE(c.size);
    const TempDir dir;
    const RunConfig run = load(write_run(dir, "[784, 10]"),
                               {"trainer.init.model={ name = \"Cnn\" }",
                                loader + "size=" + c.size,
                                loader + "batch_size=" + c.batch_size,
                                loader + "prefetch=" + c.prefetch,
                                "trainer.init.backend.verify=" + c.verify});
    rehearse_all_steps(run);
    const Rehearsal rehearsal = rehearse_all_steps(run);
    check_peak(rehearsal, run);
  }
}

TEST_CASE("the predicted peak of groups whose batches are what takes memory") {
  if (is_sanitized()) {
    MESSAGE("skipped: the sanitizer keeps what is freed");
    return;
  }
  REQUIRE(::mallopt(M_MMAP_THRESHOLD, 128 * 1024) == 1);
  constexpr int64_t kBatch = 2048 * (784 * 4 + 8);
  for (const int64_t batches : {8, 2}) {  // whole groups and a short one; only a short one
    CAPTURE(batches);
    const TempDir dir;
    const RunConfig run =
        load(write_run(dir, "[784, 10]"),
             {"trainer.init.loop.grad_accum_steps=3",
              "trainer.fit.train_dataloader.batch_size=2048",
              "trainer.fit.train_dataloader.size=" + std::to_string(2048 * batches)});
    rehearse_all_steps(run);
    const Rehearsal rehearsal = rehearse_all_steps(run);
    const RunMemory memory = memory_of(rehearsal.steps, run);
    CHECK(memory.inputs == kBatch);
    CHECK(memory.ahead == (batches == 8 ? 3 : 1) * kBatch);
    check_peak(rehearsal, run);
  }
}

TEST_CASE("the predicted peak is that of a training of the whole run") {
  if (is_sanitized()) {
    MESSAGE("skipped: the sanitizer keeps what is freed");
    return;
  }
  REQUIRE(::mallopt(M_MMAP_THRESHOLD, 128 * 1024) == 1);

  struct Case {
    std::string hidden, group, size, batch_size, prefetch;
    int64_t updates;
  };

  for (const Case& c :
       {Case{"1000, 1000", "1", "4000", "2048", "0", 8},   // one whole batch and a short one
        Case{"1000, 1000", "2", "8000", "2048", "0", 10},  // the last group has a short batch
        Case{"1000, 1000", "3", "6000", "1024", "0", 10},  // the same, products computed apart
        Case{"1000, 1000", "1", "5376", "512", "8", 40},   // a queue longer than short passes
        Case{"500", "1", "2800", "2048", "4", 8},          // a queue longer than the pass
        Case{"1000", "2", "8000", "2048", "1", 10}}) {     // used batches that lie there still
    CAPTURE(c.group);
    CAPTURE(c.size);
    const TempDir dir;
    const RunConfig run =
        load(write_run(dir, "[784, " + c.hidden + ", 10]"),
             {"trainer.init.loop={ max_steps = 99, grad_accum_steps = " + c.group + " }",
              "trainer.init.backend.verify=off",
              "trainer.fit.train_dataloader={ dataset = \"Glyphs\", size = " + c.size +
                  ", batch_size = " + c.batch_size + ", prefetch = " + c.prefetch + " }"});
    const std::vector<StepReport> steps = rehearse_all_steps(run).steps;
    check_near(rehearse(run, c.updates).grown_by, memory_of(steps, run));
  }
}

TEST_CASE("the predicted peak takes in what operators need inside") {
  if (is_sanitized()) {
    MESSAGE("skipped: the sanitizer keeps what is freed");
    return;
  }
  REQUIRE(::mallopt(M_MMAP_THRESHOLD, 128 * 1024) == 1);
  const TempDir dir;
  const RunConfig run = load(write_run(dir, "[784, 2800, 2800, 10]"),
                             {"trainer.init.loop.max_steps=99",
                              "trainer.init.backend.verify=off",
                              "trainer.init.precision.dtype=bf16"});
  rehearse_all_steps(run);
  const Rehearsal rehearsal = rehearse_all_steps(run);
  check_near(rehearse(run, 10).grown_by, memory_of(rehearsal, run));
}

TEST_CASE("a plan trains nothing that stays, and says whether a limit holds") {
  const TempDir dir;
  const std::string config = write_run(dir, "[784, 10]");
  CHECK(run({"plan", config}) == 0);
  CHECK(run({"plan", config, "--memory-limit=64MB", "--json"}) == 0);
  CHECK(run({"plan", config, "--memory-limit=10KiB"}) == 1);
  for (const char* size : {"much", "inf", "nan", "1e30GB", "9223372036854775808", "-1", "0"}) {
    CHECK_MESSAGE(run({"plan", config, std::string("--memory-limit=") + size}) == 2, size);
  }
  CHECK(run({"plan", config, "trainer.init.backend.mode=eager"}) == 2);
  CHECK_FALSE(std::filesystem::exists(dir / "run"));
  std::ostringstream shown;
  std::streambuf* const console = std::cout.rdbuf(shown.rdbuf());
  const int code = run({"plan", config, "--json", "trainer.init.backend.on_nan=explain"});
  std::cout.rdbuf(console);
  CHECK(code == 0);
  const std::string text = shown.str();
  for (const char* key :
       {"model", "inputs", "ahead", "history", "inside_operators", "replays", "peak", "measured"}) {
    CHECK_MESSAGE(text.find('"' + std::string(key) + "\": ") != std::string::npos, text);
  }
}

TEST_CASE("a plan does not hear who would end the run, and notifies nobody") {
  const TempDir dir;
  const std::string config = write_run(dir, "[784, 10]");
  RunConfig run = load(config);
  const RunMemory plain = memory_of(rehearse_all_steps(run).steps, run);
  TrainerOptions& init = run.init;
  SUBCASE("a stopper and a notification") {
    ThresholdStopper::Options stopper;
    stopper.metric = "no such metric";
    stopper.when = "update";
    init.logging.log_steps = 1;
    init.callbacks.push_back(use<ThresholdStopper>(stopper));
    init.callbacks.push_back(use<NotifyCommand>({"touch " + (dir / "notified").string()}));
  }
  SUBCASE("a callback that asks for a stop") {
    ProbeCallback::Options probe;
    probe.train_batch_end = [](Trainer& trainer) { trainer.request_stop("enough"); };
    init.callbacks.push_back(use<ProbeCallback>(probe));
  }
  SUBCASE("an early exit") {
    ProbeCallback::Options probe;
    probe.train_batch_start = [](Trainer& trainer, const Batch&) {
      trainer.slot<EarlyExitCallback>("early_exit").add([] { return true; });
    };
    init.callbacks.push_back(use<ProbeCallback>(probe));
  }
  const RunMemory planned = memory_of(rehearse_all_steps(run).steps, run);
  CHECK(planned.of_state() == plain.of_state());
  CHECK(planned.of_replays() == plain.of_replays());
  CHECK_FALSE(std::filesystem::exists(dir / "notified"));
}

TEST_CASE("a rehearsal that ends by itself, or plans nothing, is an error and no plan of 0 bytes") {
  const TempDir dir;
  RunConfig run = load(write_run(dir, "[784, 10]"));
  SUBCASE("a schedule that is over after one update") {
    run.init.slots.emplace("run_schedule", use<OneUpdate>());
    CHECK_THROWS_AS(rehearse_all_steps(run), Error);
  }
  SUBCASE("steps that change all the time") {
    ProbeCallback::Options probe;
    probe.train_batch_start = [](Trainer& trainer, const Batch&) {
      trainer.state().backend->invalidate("the moon rose");
    };
    run.init.callbacks.push_back(use<ProbeCallback>(probe));
    CHECK_THROWS_AS(rehearse_all_steps(run), NotSupportedError);
  }
}

TEST_CASE("a rehearsal has the schedules of the run, also of one in samples") {
  const TempDir dir;
  RunConfig run = load(write_run(dir, "[784, 10]"));
  run.init.loop.max_steps.reset();
  run.init.loop.max_duration = Time("64sp");
  SequentialLR::Options sequence;
  sequence.schedulers = {use<LinearLR>({0.0, 1.0, "8sp"}), use<CosineDecayLR>({1.0, 0.0, 0.5})};
  run.init.schedulers = {use<SequentialLR>(sequence)};
  CHECK(rehearse_all_steps(run).steps.size() == 1);
}

TEST_CASE("a rehearsal goes on beyond the end of a run with a schedule of its own") {
  const TempDir dir;
  RunConfig run = load(write_run(dir, "[784, 10]"));
  run.init.loop.max_steps = 2;
  run.init.slots.emplace("run_schedule", use<RunScheduleCallback>());
  CHECK(rehearse_all_steps(run).steps.size() == 1);
}

TEST_CASE("a rehearsal of all steps replays those that end a long pass, if the run does") {
  const TempDir dir;
  const auto steps_of = [&](const std::string& length) {
    const std::vector<std::string> overrides = {
        "trainer.init.loop={ grad_accum_steps = 3, " + length + " }",
        "trainer.fit.train_dataloader.size=981"};  // 20 groups and 21 samples
    std::vector<std::string> names;
    for (const StepReport& step :
         rehearse_all_steps(load(write_run(dir, "[784, 10]"), overrides)).steps) {
      CHECK_MESSAGE(step.stats.replays >= 2, step.name);
      names.push_back(step.name);
    }
    return names;
  };
  std::vector<std::string> names = {
      "train_accumulate_first_of_3.0", "train_accumulate_of_3.0", "train_update_of_3.0"};
  CHECK(steps_of("max_steps = 62") == names);
  CHECK(steps_of("max_duration = \"2942sp\"") == names);
  CHECK(steps_of("num_epochs = 2") == names);
  names.emplace_back("train_accumulate_first_of_2.0");
  names.emplace_back("train_update_of_2.0");
  CHECK(steps_of("max_steps = 63") == names);
  CHECK(steps_of("max_duration = \"2943sp\"") == names);
  CHECK(steps_of("num_epochs = 3") == names);
}

TEST_CASE("a rehearsal with short passes has the epochs of the run") {
  const TempDir dir;
  RunConfig run = load(write_run(dir, "[784, 10]"), {"trainer.fit.train_dataloader.size=170"});
  run.init.loop.max_steps.reset();
  run.init.loop.num_epochs = 3;
  SequentialLR::Options sequence;
  sequence.schedulers = {use<LinearLR>({0.0, 1.0, "1ep"}), use<CosineDecayLR>({1.0, 0.0, 0.5})};
  sequence.milestones = {"11ba"};
  run.init.schedulers = {use<SequentialLR>(sequence)};
  CHECK(rehearse_all_steps(run).steps.size() == 2);
}

TEST_CASE("a rehearsal of a given length ends there, whatever ends a pass") {
  const TempDir dir;
  const RunConfig run =
      load(write_run(dir, "[784, 10]"),
           {"trainer.fit.train_dataloader.size=170"});  // 10 batches and a short one
  const Rehearsal rehearsal = rehearse(run, 15);
  REQUIRE(rehearsal.steps.size() == 1);
  CHECK(rehearsal.steps[0].stats.replays < 15);
}

TEST_CASE("a rehearsal of a long pass has the data set of the run") {
  const TempDir dir;
  RunConfig run =
      load(write_run(dir, "[784, 10]"),
           {"trainer.fit.train_dataloader.size=1000", "trainer.init.loop.max_steps=99"});
  const DataSource* const source = &run.fit->train.source();
  const DataSource* seen = nullptr;
  ProbeCallback::Options probe;
  probe.fit_start = [&](Trainer&, const DataLoader& train) { seen = &train.source(); };
  run.init.callbacks.push_back(use<ProbeCallback>(probe));
  rehearse_all_steps(run);
  CHECK(seen == source);
}

TEST_CASE("a loss that goes bad ends a rehearsal that has planned everything") {
  const TempDir dir;
  RunConfig run = load(write_run(dir, "[784, 10]"));
  int64_t bad = 6;
  ProbeCallback::Options probe;
  probe.train_batch_end = [&](Trainer& trainer) {
    if (trainer.state().global_step() == bad) {
      throw NonFiniteLossError("planted");
    }
  };
  run.init.callbacks.push_back(use<ProbeCallback>(probe));
  CHECK(rehearse(run, 50).steps.size() == 1);
  bad = 1;
  CHECK_THROWS_AS(rehearse(run, 50), NonFiniteLossError);
}

TEST_CASE("the interpreter has no plan: the plan executor's is shown, and no timeline") {
  const TempDir dir;
  const std::string config = write_run(dir, "[784, 10]");
  const std::string interpreter = "trainer.init.backend.executor=interpreter";
  CHECK(run({"plan", config, interpreter, "--memory-limit=64MB"}) == 0);
  CHECK(run({"plan", config, interpreter, "--memory-limit=10KiB"}) == 1);
  REQUIRE(run({"fit", config, interpreter}) == 0);
  CHECK(run({"inspect", (dir / "run").string(), "--timeline", "--replays=4"}) == 2);
}

TEST_CASE("the timeline of a run is shown anew, and its trace kept with the run") {
  const TempDir dir;
  const std::string config = write_run(dir, "[784, 10]");
  REQUIRE(run({"fit", config}) == 0);
  const std::filesystem::path steps = dir / "run" / "logs" / "latest" / "steps";
  CHECK(run({"inspect", (dir / "run").string(), "--timeline", "--replays=4"}) == 0);
  CHECK(std::filesystem::exists(steps / "train_update.0.trace.json"));
  CHECK(run({"inspect", (dir / "run").string(), "--timeline", "--replays=0"}) == 2);
}

TEST_CASE("what trains a run anew in another directory does so under the run's own threads") {
  const int before = at::get_num_threads();
  const int threads = available_cores() + 1;  // which no calibration tries
  const TempDir dir;
  const std::string config = write_run(dir, "[784, 10]");
  REQUIRE(run({"fit", config, "trainer.init.backend.threads=\"auto\""}) == 0);
  std::ofstream(dir / "run" / "threads.json") << "{\"threads\": " << threads << "}\n";
  const std::string run_dir = (dir / "run").string();
  SUBCASE("inspect --timeline") {
    CHECK(run({"inspect", run_dir, "--timeline", "--replays=4"}) == 0);
  }
  SUBCASE("debug") {
    CHECK(run({"debug", run_dir, "--nan"}) == 1);  // no NaN
  }
  CHECK(at::get_num_threads() == threads);
  at::set_num_threads(before);
}
