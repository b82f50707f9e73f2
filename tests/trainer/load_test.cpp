#include <doctest/doctest.h>
#include <torch/nn/module.h>
#include <torch/types.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_file.h"
#include "core/error.h"
#include "core/file_system.h"
#include "core/version.h"
#include "data/tensor_dataset.h"
#include "optim/schedulers.h"
#include "support/probe_callback.h"
#include "support/recording_callback.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

using Steps = std::vector<int64_t>;

/// Trains in `dir`/run, going on from what is there.
FitResult train(const TempDir& dir, const LoopOptions& loop, const Time& save_every) {
  TrainerOptions options = tiny_options(dir / "run");
  options.loop = loop;
  options.checkpoint.steps = save_every;
  Trainer trainer(options, quiet_log());
  return trainer.fit(tiny_loader("train"));  // 5 batches a pass
}

LoopOptions steps(int64_t max_steps) {
  LoopOptions loop;
  loop.max_steps = max_steps;
  return loop;
}

LoopOptions epochs(int64_t num_epochs) {
  LoopOptions loop;
  loop.num_epochs = num_epochs;
  return loop;
}

/// Steps of the checkpoints in `dir`/run.
Steps saved(const TempDir& dir) {
  Steps found;
  for (const auto& entry : std::filesystem::directory_iterator(dir / "run")) {
    const std::string name = entry.path().stem().string();
    if (entry.path().extension() == ".pt") {
      found.push_back(std::stoll(name.substr(name.find('_') + 1)));
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// A checkpoint of 2 updates that says it was written by `version`, or by nobody.
std::filesystem::path with_version(const TempDir& dir, const std::string& version) {
  if (!std::filesystem::exists(dir / "run")) {
    train(dir, steps(2), 2);
  }
  StateDict state = read_checkpoint(dir / "run/checkpoint_2.pt");
  if (version.empty()) {
    state.erase("__metadata__");
  } else {
    state.find("__metadata__")->as_dict().set("version", version);
  }
  const std::filesystem::path path = dir / "changed.pt";
  write_checkpoint(*real_file_system(), path, state);
  return path;
}

/// Loads a checkpoint that says it was written by `version`; "": by nobody, so that it is another
/// program's, whose counters are not taken. \return the warnings
std::vector<std::string> load(const std::string& version, bool strict) {
  const TempDir dir;
  const std::filesystem::path path = with_version(dir, version);
  std::vector<std::string> warnings;
  TrainerOptions options = tiny_options(dir / "other");
  options.checkpoint.strict_version = strict;
  Trainer trainer(options, quiet_log(&warnings));
  trainer.load_checkpoint(path);
  CHECK(trainer.state().global_step() == (version.empty() ? 0 : 2));
  return warnings;
}

}  // namespace

TEST_SUITE_BEGIN("trainer/load");

TEST_CASE("T109: a load tells the path, lets the state be edited, and then gives it out") {
  const TempDir dir;
  train(dir, steps(2), 2);
  std::vector<std::string> hooks;
  RecordingCallback::Options recording;
  recording.hooks = &hooks;
  recording.with_update = true;
  TrainerOptions options = tiny_options(dir / "run");
  options.callbacks = {use<RecordingCallback>(recording)};
  Trainer trainer(options, quiet_log());
  hooks.clear();
  trainer.load_checkpoint({});
  CHECK(hooks == std::vector<std::string>{"on_before_load_checkpoint@0",
                                          "preprocess_checkpoint@0",
                                          "check_checkpoint@0",
                                          "on_load_checkpoint@2"});
}

TEST_CASE("T111: another major or minor version fails, or warns when that is allowed") {
  const std::string version = kVersion;
  const size_t first = version.find('.');
  const std::string major = version.substr(0, first);
  const std::string minor = version.substr(first + 1, version.find('.', first + 1) - first - 1);
  const std::string next_minor = major + "." + std::to_string(std::stoi(minor) + 1) + ".0";
  const std::string next_major = std::to_string(std::stoi(major) + 1) + "." + minor + ".0";
  for (const std::string& other : {next_minor, next_major}) {
    CHECK_THROWS_AS(load(other, /*strict=*/true), CheckpointError);
    const std::vector<std::string> warnings = load(other, /*strict=*/false);
    REQUIRE(warnings.size() == 1);
    CHECK(warnings[0].find(other) != std::string::npos);
  }
  CHECK(load(major + "." + minor + ".999", true).empty());
  CHECK(load(next_major + "+local", true).empty());
  CHECK(load("", true).empty());
}

TEST_CASE("T110: other parameters are tolerated when that is allowed; no model at all never is") {
  const TempDir dir;
  train(dir, steps(2), 2);
  StateDict state = read_checkpoint(dir / "run/checkpoint_2.pt");
  state.find("model")->as_dict().erase("0.bias");
  state.find("model")->as_dict().set("more", at::zeros({2}));
  write_checkpoint(*real_file_system(), dir / "other.pt", state);
  state.erase("model");
  write_checkpoint(*real_file_system(), dir / "none.pt", state);
  TrainerOptions options = tiny_options(dir / "run");
  Trainer strict(options, quiet_log());
  CHECK_THROWS_AS(strict.load_checkpoint(dir / "other.pt"), Error);
  CHECK_THROWS_AS(strict.load_checkpoint(dir / "none.pt"), Error);
  CHECK(strict.state().global_step() == 0);
  options.checkpoint.disable_strict_checkpoint_loading = true;
  Trainer lenient(options, quiet_log());
  CHECK_THROWS_AS(lenient.load_checkpoint(dir / "none.pt"), Error);
  lenient.load_checkpoint(dir / "other.pt");
  CHECK(lenient.state().global_step() == 2);
}

TEST_CASE("C56: a callback may edit what is loaded, and leave parts of it out") {
  const TempDir dir;
  train(dir, steps(2), 2);
  ProbeCallback::Options probe;
  probe.preprocess_checkpoint = [](StateDict& state) {
    state.erase("timestamp");
    state.set("global_step", int64_t{1});
    state.find("model")->as_dict().find("0.bias")->as_tensor().fill_(0.5);
  };
  TrainerOptions options = tiny_options(dir / "run");
  options.callbacks = {use<ProbeCallback>(probe)};
  Trainer trainer(options, quiet_log());
  trainer.load_checkpoint({});
  CHECK(trainer.state().global_step() == 1);
  CHECK(trainer.state().model->module().named_parameters()["0.bias"].eq(0.5).all().item<bool>());
}

TEST_CASE("C52: the last update is saved though it is off the interval") {
  const TempDir dir;
  train(dir, steps(7), 3);
  CHECK(saved(dir) == Steps{3, 6, 7});
}

TEST_CASE("P24: every second epoch and the last one are saved") {
  const TempDir dir;
  train(dir, epochs(5), "2ep");
  CHECK(saved(dir) == Steps{10, 20, 25});
}

TEST_CASE("P28: in an empty directory a run begins afresh") {
  const TempDir dir;
  std::filesystem::create_directories(dir / "run");
  const FitResult result = train(dir, steps(3), 3);
  CHECK(result.steps_now == 3);
  CHECK_FALSE(result.was_already_done);
}

TEST_CASE("P29: epochs are a total, also after a resume") {
  const TempDir dir;
  CHECK(train(dir, epochs(2), "1ep").steps_now == 10);
  const FitResult resumed = train(dir, epochs(3), "1ep");
  CHECK(resumed.steps == 15);
  CHECK(resumed.steps_now == 5);
}

TEST_CASE("P31: a resume restores every counter") {
  const TempDir dir;
  train(dir, steps(7), 7);
  Trainer trainer(tiny_options(dir / "run"), quiet_log());
  trainer.load_checkpoint({});
  const Timestamp& time = trainer.state().timestamp;
  CHECK(time.epoch == 1);
  CHECK(time.update == 7);
  CHECK(time.update_in_epoch == 2);
  CHECK(time.batch == 7);
  CHECK(time.batch_in_epoch == 2);
  CHECK(time.sample == 14);
  CHECK(time.sample_in_epoch == 4);
  CHECK(time.total_seconds > 0.0);
}

TEST_CASE("C20: a schedule moves with every update, in whatever unit it and the run are counted") {
  struct Case {
    std::string mode;
    Time total_iters;
    Time max_duration;
  };

  // An update is a batch of two samples, a pass has five of them.
  for (const Case& one : std::vector<Case>{{"eager", 10, 10},
                                           {"traced", 10, 10},
                                           {"traced", "2ep", "2ep"},
                                           {"eager", "20sp", "2ep"},
                                           {"traced", "20sp", 10},
                                           {"eager", 1.0, "20sp"},
                                           {"traced", 0.5, "40sp"}}) {
    INFO(one.mode << ", " << one.total_iters.to_string() << " of " << one.max_duration.to_string());
    const TempDir dir;
    std::vector<double> rates;
    ProbeCallback::Options probe;
    probe.train_batch_end = [&](Trainer& trainer) {
      rates.push_back(trainer.state().optimizer->groups()[0]["lr"].item<double>());
    };
    TrainerOptions options = tiny_options(dir / "run");
    options.backend.mode = one.mode;
    options.callbacks = {use<ProbeCallback>(probe)};
    options.schedulers = {use<LinearLR>({1.0, 0.0, one.total_iters})};
    options.loop.max_duration = one.max_duration;
    Trainer trainer(options, quiet_log());
    trainer.fit(tiny_loader("train"));
    REQUIRE(rates.size() >= 10);
    for (size_t i = 0; i < rates.size(); ++i) {
      CHECK(rates[i] == doctest::Approx(std::max(0.0, 1.0 - static_cast<double>(i + 1) / 10.0)));
    }
  }
}

TEST_CASE("a schedule counts what groups of batches have taken, whatever is in a batch") {
  // Batches of 2 and a last one of 1, in groups of 2: 4, 4 and 1 samples an update, 3 tokens each.
  TensorMap rows;
  rows.set("x", torch::ones({9, 4}));
  rows.set("label", torch::zeros({9}, torch::kLong));
  rows.set("tokens", torch::zeros({9, 3}, torch::kLong));
  LoaderOptions batches;
  batches.batch_size = 2;
  const DataLoader train("train", from_tensors(rows), batches);
  for (const char* mode : {"eager", "traced"}) {
    for (const Time& total_iters : {Time("36sp"), Time("108tok")}) {
      INFO(mode << ", " << total_iters.to_string());
      const TempDir dir;
      std::vector<double> rates;
      ProbeCallback::Options probe;
      probe.train_batch_end = [&](Trainer& trainer) {
        if (trainer.state().position.is_last) {
          rates.push_back(trainer.state().optimizer->groups()[0]["lr"].item<double>());
        }
      };
      TrainerOptions options = tiny_options(dir / "run");
      options.backend.mode = mode;
      options.callbacks = {use<ProbeCallback>(probe)};
      options.schedulers = {use<LinearLR>({1.0, 0.0, total_iters})};
      options.loop.grad_accum_steps = 2;
      options.loop.max_steps = 12;
      Trainer(options, quiet_log()).fit(train);
      double samples = 0.0;
      REQUIRE(rates.size() == 12);
      for (size_t i = 0; i < rates.size(); ++i) {
        samples += i % 3 == 2 ? 1.0 : 4.0;
        CHECK(rates[i] == doctest::Approx(1.0 - samples / 36.0));
      }
    }
  }
}

TEST_SUITE_END();
