#include "loops/validate_all.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/error.h"
#include "support/probe_callback.h"
#include "support/recording_callback.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

TEST_SUITE_BEGIN("loops/validate_all");

TEST_CASE(
    "T53: the matches of a glob are visited by step; wildcards in directories do not expand") {
  const TempDir dir;
  for (const char* name :
       {"checkpoint_100.pt", "checkpoint_20.pt", "checkpoint_3.pt", "notes.txt"}) {
    std::ofstream(dir / name) << "x";
  }
  const Paths found = matching_checkpoints({(dir / "checkpoint_*.pt").string()}, CheckpointName());
  REQUIRE(found.size() == 3);
  CHECK(found[0].filename() == "checkpoint_3.pt");
  CHECK(found[1].filename() == "checkpoint_20.pt");
  CHECK(found[2].filename() == "checkpoint_100.pt");
  CHECK_THROWS_AS(
      matching_checkpoints({(dir.path().parent_path() / "*" / "checkpoint_3.pt").string()},
                           CheckpointName()),
      IoError);
}

TEST_CASE("a link to a file that is meant is left out of the matches") {
  const TempDir dir;
  std::ofstream(dir / "checkpoint_1.pt");
  std::filesystem::create_symlink("checkpoint_1.pt", dir / "latest");
  const auto found_by = [&](const char* glob) {
    return matching_checkpoints({(dir / glob).string()}, CheckpointName());
  };
  CHECK(found_by("*") == Paths{dir / "checkpoint_1.pt"});
  CHECK(found_by("lat*") == Paths{dir / "latest"});
}

TEST_CASE("the update of a file is what the run's names say, else the last number in its name") {
  const CheckpointName usual;
  const CheckpointName own("gpt2_{step}.e{epoch}.pt");
  CHECK(step_in_name("runs/a7/checkpoint_20.pt", usual) == 20);
  CHECK(step_in_name("checkpoint_20_20261121_222000.pt", usual) == 20);
  CHECK(step_in_name("gpt2_150.e3.pt", own) == 150);
  CHECK(step_in_name("m5_100.mp4", usual) == 100);
  CHECK(step_in_name("weights.pt", usual) == -1);
}

TEST_CASE("T51: a glob without a match is an error that names it, before anything is validated") {
  const TempDir dir;
  std::vector<std::string> hooks;
  RecordingCallback::Options recording;
  recording.hooks = &hooks;
  TrainerOptions options = tiny_options(dir / "run");
  options.loop.max_steps = 2;
  options.checkpoint.steps = 1;
  options.callbacks = {use<RecordingCallback>(recording)};
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train"));
  const std::string two = (dir / "run/checkpoint_*.pt").string();
  for (const char* missing : {"run/nothing_*.pt", "run/checkpoint_7.pt"}) {
    hooks.clear();
    const std::string glob = (dir / missing).string();
    try {
      trainer.validate_all({tiny_loader("val")}, {two, glob});
      FAIL("nothing was thrown");
    } catch (const IoError& error) {
      CHECK(std::string(error.what()).find(glob) != std::string::npos);
    }
    CHECK(hooks.empty());
  }
  CHECK(trainer.validate_all({tiny_loader("val")}, {two}).rows.size() == 2);
}

TEST_CASE("T52: two checkpoints and two loaders make two rows with the metrics of both loaders") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.loop.max_steps = 6;
  options.checkpoint.steps = 3;
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train"));
  const Loaders loaders = {tiny_loader("a"), tiny_loader("b", 6, 2, 9)};
  const ValidationTable table =
      trainer.validate_all(loaders, {(dir / "run/checkpoint_*.pt").string()});
  REQUIRE(table.rows.size() == 2);
  CHECK(std::filesystem::exists(trainer.state().artifact_dir / "validate_all.csv"));
  CHECK(std::filesystem::exists(trainer.state().artifact_dir / "validate_all.json"));
  CHECK(table.rows[0].step == 3);
  CHECK(table.rows[1].step == 6);
  for (const ValidationRow& row : table.rows) {
    CHECK(row.metrics.number("a/loss"));
    CHECK(row.metrics.number("b/loss"));
  }
  CHECK(*table.rows[0].metrics.number("a/loss") != *table.rows[1].metrics.number("a/loss"));
}

TEST_CASE("T54: without loaders there is a warning and nothing else") {
  const TempDir dir;
  std::vector<std::string> warnings;
  Trainer trainer(tiny_options(dir / "run"), quiet_log(&warnings));
  CHECK(trainer.validate_all({}).rows.empty());
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("no loader") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(trainer.state().artifact_dir / "validate_all.csv"));
}

TEST_CASE("T54: an empty list of checkpoints is a warning, and nothing is evaluated") {
  const TempDir dir;
  int batches = 0;
  ProbeCallback::Options probe;
  probe.validate_batch_start = [&](Trainer&, const Batch&) { ++batches; };
  std::vector<std::string> warnings;
  TrainerOptions options = tiny_options(dir / "run");
  options.callbacks = {use<ProbeCallback>(probe)};
  Trainer trainer(options, quiet_log(&warnings));
  CHECK(trainer.validate_all({tiny_loader("val")}, std::vector<std::string>{}).rows.empty());
  CHECK(batches == 0);
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("no checkpoint") != std::string::npos);
}

TEST_CASE("a stop in a validate_all leaves no row of what was evaluated in part") {
  const TempDir dir;
  int batches = 0;
  ProbeCallback::Options probe;
  probe.validate_batch_start = [&](Trainer& trainer, const Batch&) {
    if (++batches == 7) {  // the second of the second loader
      trainer.request_stop("enough");
    }
  };
  TrainerOptions options = tiny_options(dir / "run");
  options.callbacks = {use<ProbeCallback>(probe)};
  Trainer trainer(options, quiet_log());
  CHECK(trainer.validate_all({tiny_loader("a"), tiny_loader("b")}).rows.empty());
  CHECK(batches == 7);
}

TEST_CASE("T22: loaders without label are validate_0 and validate_1, the same ones again later") {
  const TempDir dir;
  Trainer trainer(tiny_options(dir / "run"), quiet_log());
  const DataLoader first = tiny_loader();
  const DataLoader second = tiny_loader();
  CHECK(trainer.validate(first).number("validate_0/loss"));
  CHECK(trainer.validate(second).number("validate_1/loss"));
  CHECK(trainer.validate(first).number("validate_0/loss"));
}

TEST_CASE("two loaders of one label are refused before anything is run") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.loop.max_steps = 2;
  Trainer trainer(options, quiet_log());
  const Loaders loaders = {tiny_loader("val"), tiny_loader("val", 6)};
  CHECK_THROWS_AS(trainer.fit(tiny_loader("train"), loaders), UsageError);
  CHECK(trainer.state().global_step() == 0);
  CHECK_THROWS_AS(trainer.validate_all(loaders), UsageError);
  CHECK_THROWS_AS(trainer.validate_all(loaders, {(dir / "run/*.pt").string()}), UsageError);
  CHECK_THROWS_AS(trainer.validate_all_indexed(loaders), UsageError);
  CHECK(trainer.fit(tiny_loader("train"), {loaders.front()}).steps == 2);
}

TEST_CASE("a validation loss is the mean over samples, not over batches") {
  const TempDir dir;
  Trainer trainer(tiny_options(dir / "run"), quiet_log());
  const double whole = *trainer.validate(tiny_loader("a", 10, 10)).number("a/loss");
  const double uneven = *trainer.validate(tiny_loader("b", 10, 4)).number("b/loss");
  CHECK(std::abs(whole - uneven) < 1e-6);  // float32 sums in another order
}

TEST_SUITE_END();
