#include <doctest/doctest.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "callbacks/core/checkpoint_callback.h"
#include "checkpoint/checkpoint_file.h"
#include "checkpoint/checkpoint_index.h"
#include "checkpoint/checkpoint_name.h"
#include "core/error.h"
#include "loops/sample_stream.h"
#include "loops/validate_all.h"
#include "support/campaign.h"
#include "support/faulty_fs.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace fs = std::filesystem;

TEST_SUITE_BEGIN("trainer/checkpoint_save");

namespace {

/// Remembers how many file operations were done when each save was.
class CountOperations final : public Callback {
 public:
  struct Options {
    FaultyFs* files = nullptr;
    std::vector<size_t>* counts = nullptr;
  };

  explicit CountOperations(const Options& options) : options_(options) {}

  void on_after_save_checkpoint(Trainer&, const fs::path&) override {
    options_.counts->push_back(options_.files->operations().size());
  }

 private:
  Options options_;
};

/// Calls a function at the end of each batch of training, or of validation.
class AtBatchEnd final : public Callback {
 public:
  struct Options {
    std::function<void(Trainer&)> train = [](Trainer&) {};
    std::function<void(Trainer&)> validate = [](Trainer&) {};
  };

  explicit AtBatchEnd(const Options& options) : options_(options) {}

  void on_train_batch_end(
      Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t) override {
    options_.train(trainer);
  }

  void on_validate_batch_end(
      Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t) override {
    options_.validate(trainer);
  }

 private:
  Options options_;
};

TrainerOptions saving_options(const fs::path& model_dir, bool async) {
  TrainerOptions options = tiny_options(model_dir);
  options.loop.max_steps = 6;
  options.checkpoint.steps = 2;
  options.checkpoint.async = async;
  return options;
}

void save_through(TrainerOptions& options, const std::shared_ptr<FileSystem>& files) {
  options.slots["checkpoint"] = use<CheckpointCallback>({files});
}

StateDict straight_run(bool async = false) {
  const TempDir dir;
  Trainer trainer(saving_options(dir / "run", async), quiet_log());
  trainer.fit(tiny_loader("train"));
  return bits_of(trainer);
}

/// File operations of a run: those before its second save, and those until that one is published.
struct SecondSave {
  size_t begin = 0;
  size_t end = 0;
  std::vector<std::string> names;
};

SecondSave second_save(bool async) {
  const TempDir dir;
  const auto files = std::make_shared<FaultyFs>();
  std::vector<size_t> counts;
  TrainerOptions options = saving_options(dir / "run", async);
  save_through(options, files);
  options.callbacks = {use<CountOperations>({files.get(), &counts})};
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train"));
  return {counts.at(0), counts.at(1), files->operations()};
}

/// Appends are many and alike: a run of them is tried at its ends, and whole when scaled up.
std::vector<size_t> operations_to_try(const SecondSave& save) {
  std::vector<size_t> tried;
  for (size_t n = save.begin; n < save.end; ++n) {
    const bool is_inner = n > 0 && save.names[n] == "append" && save.names[n - 1] == "append" &&
                          save.names[n + 1] == "append";
    if (!is_inner || campaign_scale() > 1) {
      tried.push_back(n);
    }
  }
  return tried;
}

struct Injection {
  FaultKind fault;
  int error;
};

constexpr Injection kInjections[] = {{FaultKind::Error, ENOSPC},
                                     {FaultKind::Error, EIO},
                                     {FaultKind::ShortWrite, ENOSPC},
                                     {FaultKind::Kill, 0},
                                     {FaultKind::TornKill, 0},
                                     {FaultKind::PowerCut, 0}};

/// Trains with a fault in one operation. \return false when that ended the run
bool train_with_fault(const fs::path& model_dir, bool async, size_t n, const Injection& injection) {
  const auto files = std::make_shared<FaultyFs>();
  files->fail_at(n, injection.fault, injection.error);
  TrainerOptions options = saving_options(model_dir, async);
  save_through(options, files);
  try {
    Trainer trainer(options, quiet_log());
    trainer.fit(tiny_loader("train"));
    return true;
  } catch (...) {
    return false;
  }
}

int64_t newest_step(const fs::path& model_dir) {
  const CheckpointIndex index(real_file_system(), model_dir, CheckpointName());
  return read_checkpoint(*index.newest()).at("global_step").as_int();
}

/// After a fault in any operation of the second save (at update 4) the newest checkpoint is whole,
/// is the first or the second, and the run goes on to the bits of one without faults.
void try_every_operation(bool async) {
  const StateDict straight = straight_run();
  const SecondSave save = second_save(async);
  REQUIRE(save.end > save.begin + 10);
  for (const Injection& injection : kInjections) {
    for (const size_t n : operations_to_try(save)) {
      CAPTURE(int(injection.fault));
      CAPTURE(save.names[n]);
      CAPTURE(n - save.begin);
      const TempDir dir;
      if (train_with_fault(dir / "run", async, n, injection)) {
        CHECK(save.names[n] == "exists");  // nothing else may fail unnoticed
        continue;
      }
      const int64_t step = newest_step(dir / "run");
      CHECK((step == 2 || step == 4));
      Trainer restarted(saving_options(dir / "run", async), quiet_log());
      CHECK(restarted.fit(tiny_loader("train")).steps_now == 6 - step);
      CHECK(first_difference(straight, bits_of(restarted)).empty());
      // No file is left that the index does not know of, and none got another name for it.
      std::vector<std::string> saved;
      for (const std::string& name : real_file_system()->list(dir / "run")) {
        CHECK(name.find(".tmp") == std::string::npos);
        if (name.find(".pt") != std::string::npos) {
          saved.push_back(name);
        }
      }
      CHECK(saved ==
            std::vector<std::string>{"checkpoint_2.pt", "checkpoint_4.pt", "checkpoint_6.pt"});
      CHECK(CheckpointIndex(real_file_system(), dir / "run", CheckpointName()).listed().size() ==
            3);
    }
  }
}

}  // namespace

TEST_CASE(
    "T104: whichever operation of a save fails, dies or loses power, the run goes on from a whole "
    "checkpoint") {
  try_every_operation(/*async=*/false);
}

TEST_CASE("T104: the same when it is written in the background") {
  try_every_operation(/*async=*/true);
}

TEST_CASE("a save that fails ends the run, or is told and passed over: on_error decides") {
  for (const bool async : {false, true}) {
    CAPTURE(async);
    const SecondSave save = second_save(async);
    for (const bool warns : {false, true}) {
      const TempDir dir;
      const auto files = std::make_shared<FaultyFs>();
      files->fail_at(save.begin + 3, FaultKind::ShortWrite, ENOSPC);
      TrainerOptions options = saving_options(dir / "run", async);
      options.checkpoint.on_error = warns ? "warn" : "fail";
      save_through(options, files);
      std::vector<MemoryLogger::Entry> entries;
      options.loggers = {use<MemoryLogger>({&entries})};
      std::vector<std::string> lines;
      Trainer trainer(options, quiet_log(&lines));
      if (!warns) {
        CHECK_THROWS_AS(trainer.fit(tiny_loader("train")), Error);
        CHECK(newest_step(dir / "run") == 2);
        continue;
      }
      const FitResult result = trainer.fit(tiny_loader("train"));
      CHECK(result.saves.failed == 1);
      CHECK(result.saves.written == 2);
      REQUIRE(lines.size() == 1);
      CHECK(lines[0].find("checkpoint_4.pt") != std::string::npos);
      CHECK(lines[0].find("checkpoint_2.pt") != std::string::npos);
      CHECK(first_difference(straight_run(), bits_of(trainer)).empty());
    }
  }
}

TEST_CASE("saves in the background hold the state of their update, and change nothing in the run") {
  const TempDir dir;
  for (const bool async : {false, true}) {
    TrainerOptions options = saving_options(dir.path() / (async ? "async" : "sync"), async);
    options.checkpoint.steps = 1;
    Trainer trainer(options, quiet_log());
    const FitResult result = trainer.fit(tiny_loader("train"));
    CHECK(result.saves.written == 6);
    CHECK(result.saves.pause_s > 0.0);
    CHECK(result.last_checkpoint->filename() == "checkpoint_6.pt");
  }
  for (int step = 1; step <= 6; ++step) {
    const std::string name = "checkpoint_" + std::to_string(step) + ".pt";
    StateDict sync = read_checkpoint(dir.path() / "sync" / name);
    StateDict async = read_checkpoint(dir.path() / "async" / name);
    for (const char* section : {"model", "optimizer", "rng", "dataloader"}) {
      CHECK(first_difference(sync.at(section).as_dict(), async.at(section).as_dict()).empty());
    }
  }
}

TEST_CASE("C48: `latest` leads to the newest checkpoint, relatively") {
  const TempDir dir;
  Trainer trainer(saving_options(dir / "run", false), quiet_log());
  trainer.fit(tiny_loader("train"));
  CHECK(fs::read_symlink(dir / "run/latest") == "checkpoint_6.pt");
  CHECK(read_checkpoint(dir / "run/latest").at("global_step").as_int() == 6);
}

TEST_CASE("C53: a run with compressed checkpoints resumes through its index, latest and globs") {
  const TempDir dir;
  TrainerOptions options = saving_options(dir / "run", false);
  options.checkpoint.checkpoint_name = "c{step}.pt.zst";
  options.loop.max_steps = 4;
  for (const bool async : {false, true}) {
    options.checkpoint.async = async;
    Trainer trainer(options, quiet_log());
    CHECK(trainer.fit(tiny_loader("train")).steps_now == (async ? 2 : 4));
    options.loop.max_steps = 6;
    if (async) {
      CHECK(first_difference(straight_run(), bits_of(trainer)).empty());
    }
  }
  CHECK(fs::read_symlink(dir / "run/latest") == "c6.pt.zst");
  CHECK(matching_checkpoints({(dir / "run/*.pt.zst").string()}, CheckpointName()).size() == 3);
  Trainer trainer(options, quiet_log());
  CHECK(trainer.validate_all_indexed({tiny_loader("val")}).rows.size() == 3);
}

TEST_CASE("a save that is asked for comes after the current update, whatever the cadence") {
  for (const int64_t steps : {0, 100}) {
    const TempDir dir;
    TrainerOptions options = saving_options(dir / "run", false);
    options.checkpoint.steps = steps;
    options.loop.grad_accum_steps = 2;
    AtBatchEnd::Options ask;
    ask.train = [](Trainer& trainer) {
      if (trainer.state().global_step() == 3 && !trainer.state().position.is_last) {
        trainer.request_save();
      }
    };
    options.callbacks = {use<AtBatchEnd>(ask)};
    Trainer trainer(options, quiet_log());
    CHECK(trainer.fit(tiny_loader("train")).steps == 6);
    CHECK(fs::exists(dir / "run/checkpoint_4.pt"));
    CHECK(fs::exists(dir / "run/checkpoint_6.pt"));
  }
}

TEST_CASE(
    "a run that is stopped in a validation keeps the updates before it, and validates again") {
  const TempDir dir;
  TrainerOptions options = saving_options(dir / "run", false);
  options.checkpoint.steps = 100;
  options.loop.eval_frequency = 3;
  AtBatchEnd::Options stop;
  stop.validate = [](Trainer& trainer) { trainer.request_stop("stopped by the test"); };
  options.callbacks = {use<AtBatchEnd>(stop)};
  {
    Trainer trainer(options, quiet_log());
    CHECK(trainer.fit(tiny_loader("train"), {tiny_loader("val")}).steps == 3);
  }
  CHECK(newest_step(dir / "run") == 3);
  int batches = 0;
  AtBatchEnd::Options count;
  count.validate = [&](Trainer&) { ++batches; };
  options.callbacks = {use<AtBatchEnd>(count)};
  Trainer resumed(options, quiet_log());
  CHECK(resumed.fit(tiny_loader("train"), {tiny_loader("val")}).steps_now == 3);
  CHECK(batches == 10);  // both validations, five batches each
  CHECK(first_difference(straight_run(), bits_of(resumed)).empty());
}

TEST_CASE("the last update of a run that is stopped is saved again when its save had failed") {
  for (const bool async : {false, true}) {
    CAPTURE(async);
    const SecondSave save = second_save(async);
    const TempDir dir;
    const auto files = std::make_shared<FaultyFs>();
    files->fail_at(save.begin + 3, FaultKind::ShortWrite, ENOSPC);
    TrainerOptions options = saving_options(dir / "run", async);
    options.checkpoint.on_error = "warn";
    save_through(options, files);
    AtBatchEnd::Options stop;
    stop.train = [](Trainer& trainer) {
      if (trainer.state().global_step() == 4) {
        trainer.request_stop("stopped by the test");
      }
    };
    options.callbacks = {use<AtBatchEnd>(stop)};
    Trainer trainer(options, quiet_log());
    const FitResult result = trainer.fit(tiny_loader("train"));
    CHECK(result.steps == 4);
    CHECK(result.saves.failed == 1);
    CHECK(newest_step(dir / "run") == 4);
  }
}

/// A stop after update 3.
Factory<Callback> stop_at_3() {
  AtBatchEnd::Options stop;
  stop.train = [](Trainer& trainer) {
    if (trainer.state().global_step() == 3) {
      trainer.request_stop("stopped by the test");
    }
  };
  return use<AtBatchEnd>(stop);
}

TEST_CASE("which updates are saved, by steps and save_final_checkpoint, at the end and at a stop") {
  struct Case {
    int64_t steps;
    bool saves_final;
    Paths at_end;
    Paths at_stop;
  };

  for (const Case& one :
       {Case{0, true, {"checkpoint_6.pt"}, {"checkpoint_3.pt"}},
        Case{0, false, {}, {}},
        Case{4, true, {"checkpoint_4.pt", "checkpoint_6.pt"}, {"checkpoint_3.pt"}},
        Case{4, false, {"checkpoint_4.pt"}, {"checkpoint_3.pt"}}}) {
    for (const bool stops : {false, true}) {
      CAPTURE(one.steps);
      CAPTURE(one.saves_final);
      CAPTURE(stops);
      const TempDir dir;
      TrainerOptions options = saving_options(dir / "run", false);
      options.checkpoint.steps = one.steps;
      options.checkpoint.save_final_checkpoint = one.saves_final;
      if (stops) {
        options.callbacks = {stop_at_3()};
      }
      std::vector<std::string> lines;
      Trainer trainer(options, quiet_log(&lines));
      trainer.fit(tiny_loader("train"));
      Paths saved;
      for (const fs::path& path : trainer.slot<CheckpointCallback>().indexed()) {
        saved.push_back(path.filename());
      }
      CHECK(saved == (stops ? one.at_stop : one.at_end));
      const bool is_told = std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
        return line.find("nothing since the beginning was saved") != std::string::npos;
      });
      CHECK(is_told == (stops && saved.empty()));
    }
  }
}

TEST_CASE(
    "a pass whose end is known only when the data ends is saved, too, in the background too") {
  for (const bool async : {false, true}) {
    CAPTURE(async);
    const TempDir dir;
    TrainerOptions options = saving_options(dir / "run", async);
    options.loop.max_steps = {};
    options.loop.num_epochs = 1;
    options.checkpoint.steps = 0;
    Trainer trainer(options, quiet_log());
    const FitResult result = trainer.fit(stream_loader({10}));
    CHECK(result.steps == 5);
    CHECK(result.saves.written == 1);
    CHECK(newest_step(dir / "run") == result.steps);
  }
}

TEST_CASE("a fit that has nothing to train saves nothing again") {
  const TempDir dir;
  TrainerOptions options = saving_options(dir / "run", false);
  options.checkpoint.steps = 0;
  CHECK(Trainer(options, quiet_log()).fit(tiny_loader("train")).saves.written == 1);
  const FitResult again = Trainer(options, quiet_log()).fit(tiny_loader("train"));
  CHECK(again.was_already_done);
  CHECK(again.saves.written == 0);
}

TEST_SUITE_END();
