#include "callbacks/builtin/keep_n_checkpoints.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_file.h"
#include "checkpoint/checkpoint_index.h"
#include "checkpoint/checkpoint_name.h"
#include "core/error.h"
#include "core/file_system.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace fs = std::filesystem;

namespace {

/// Names of the checkpoints in a run's directory, in their order.
std::vector<std::string> checkpoints_in(const fs::path& run) {
  std::vector<std::string> names;
  for (const std::string& name : real_file_system()->list(run)) {
    if (name.find("checkpoint_") == 0) {
      names.push_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// Trains to this update with a save every second one. \return the updates that it did
int64_t train_keeping(const fs::path& model_dir,
                      int64_t until,
                      std::optional<int64_t> kept,
                      const LoadFrom& from = {}) {
  TrainerOptions options = tiny_options(model_dir);
  options.loop.max_steps = until;
  options.checkpoint.steps = 2;
  if (kept) {
    options.callbacks = {use<KeepNCheckpoints>({*kept})};
  }
  Trainer trainer(options, quiet_log());
  return trainer.fit(tiny_loader("train"), {}, from).steps_now;
}

using Names = std::vector<std::string>;

/// Ends the run behind the save of an update, before the callbacks after it hear of it.
class DieAfterSave final : public Callback {
 public:
  struct Options {
    int64_t update = 0;
  };

  explicit DieAfterSave(const Options& options) : options_(options) {}

  void on_after_save_checkpoint(Trainer& trainer, const fs::path&) override {
    if (trainer.state().global_step() == options_.update) {
      throw std::runtime_error("died");
    }
  }

 private:
  Options options_;
};

}  // namespace

TEST_SUITE_BEGIN("trainer/keep_n_checkpoints");

TEST_CASE("T114: KeepNCheckpoints leaves the newest ones, and the index agrees") {
  const TempDir dir;
  CHECK(train_keeping(dir / "run", 10, 2) == 10);
  CHECK(checkpoints_in(dir / "run") == Names{"checkpoint_10.pt", "checkpoint_8.pt"});
  const CheckpointIndex index(real_file_system(), dir / "run", CheckpointName());
  CHECK(index.listed() ==
        std::vector<fs::path>{dir / "run/checkpoint_8.pt", dir / "run/checkpoint_10.pt"});
}

TEST_CASE("T114: after a resume KeepNCheckpoints goes on with the files of its run") {
  const TempDir dir;
  CHECK(train_keeping(dir / "run", 4, 2) == 4);
  CHECK(checkpoints_in(dir / "run") == Names{"checkpoint_2.pt", "checkpoint_4.pt"});
  CHECK(train_keeping(dir / "run", 6, 2) == 2);
  CHECK(checkpoints_in(dir / "run") == Names{"checkpoint_4.pt", "checkpoint_6.pt"});
  CHECK(train_keeping(dir / "run", 8, 2) == 2);
  CHECK(checkpoints_in(dir / "run") == Names{"checkpoint_6.pt", "checkpoint_8.pt"});
}

TEST_CASE(
    "T114: a run that died between a save and the deletion of the oldest file makes up for it") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.loop.max_steps = 8;
  options.checkpoint.steps = 2;
  options.callbacks = {use<DieAfterSave>({6}), use<KeepNCheckpoints>({2})};
  CHECK_THROWS_AS(Trainer(options, quiet_log()).fit(tiny_loader("train")), Error);
  CHECK(checkpoints_in(dir / "run").size() == 3);
  train_keeping(dir / "run", 8, 2);
  train_keeping(dir / "straight", 8, 2);
  const auto saved = [&](const char* run) {
    return read_checkpoint(dir / run / "checkpoint_8.pt")
        .at("callbacks/KeepNCheckpoints")
        .as_dict();
  };
  CHECK(first_difference(saved("run"), saved("straight")).empty());
  CHECK(checkpoints_in(dir / "run") == Names{"checkpoint_6.pt", "checkpoint_8.pt"});
}

TEST_CASE("T114: KeepNCheckpoints leaves the files of earlier runs alone") {
  const TempDir dir;
  train_keeping(dir / "run", 4, {});
  SUBCASE("of the same directory, from which it goes on") {
    CHECK(train_keeping(dir / "run", 8, 1) == 4);
    CHECK(checkpoints_in(dir / "run") ==
          Names{"checkpoint_2.pt", "checkpoint_4.pt", "checkpoint_8.pt"});
  }
  SUBCASE("of the same directory, beside which it begins afresh") {
    CHECK(train_keeping(dir / "run", 8, 1, LoadFrom::nothing()) == 8);
    CHECK(checkpoints_in(dir / "run") ==
          Names{"checkpoint_2.pt", "checkpoint_4.pt", "checkpoint_8.pt"});
  }
  SUBCASE("of another directory, which kept checkpoints as well") {
    train_keeping(dir / "kept", 4, 2);
    CHECK(train_keeping(dir / "new", 8, 1, LoadFrom(dir / "kept/checkpoint_4.pt")) == 4);
    CHECK(checkpoints_in(dir / "kept") == Names{"checkpoint_2.pt", "checkpoint_4.pt"});
    CHECK(checkpoints_in(dir / "new") == Names{"checkpoint_8.pt"});
  }
}

TEST_CASE("T114: keeping no checkpoint, or fewer, is refused") {
  for (const int64_t n : {0, -1}) {
    const TempDir dir;
    TrainerOptions options = tiny_options(dir / "run");
    options.callbacks = {use<KeepNCheckpoints>({n})};
    CHECK_THROWS_AS(Trainer(options, quiet_log()), UsageError);
  }
}

TEST_SUITE_END();
