// What becomes of a run when its directory is moved, copied, out of reach or used in another way.

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "callbacks/builtin/keep_best_checkpoints.h"
#include "callbacks/builtin/keep_n_checkpoints.h"
#include "callbacks/builtin/save_checkpoint_state.h"
#include "checkpoint/checkpoint_file.h"
#include "checkpoint/checkpoint_index.h"
#include "core/error.h"
#include "optim/optimizers.h"
#include "optim/schedulers.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace fs = std::filesystem;

TEST_SUITE_BEGIN("trainer/run_directory");

namespace {

using Names = std::vector<std::string>;

TrainerOptions directory_options(const fs::path& model_dir, int64_t max_steps) {
  TrainerOptions options = tiny_options(model_dir);
  options.loop.max_steps = max_steps;
  options.checkpoint.steps = 2;
  return options;
}

/// Logs the number of updates in each validation.
class CountAsMetric final : public Callback {
 public:
  struct Options {};

  explicit CountAsMetric(const Options&) {}

  void on_validate_end(Trainer& trainer, Model&, Loop&) override {
    trainer.state().last_metrics.set("score", static_cast<double>(trainer.state().global_step()));
  }
};

/// A run that keeps its newest checkpoint, and the newest two as the best ones.
TrainerOptions keeping_options(const fs::path& model_dir, int64_t max_steps) {
  TrainerOptions options = directory_options(model_dir, max_steps);
  options.loop.eval_frequency = 2;
  options.callbacks = {use<CountAsMetric>({}),
                       use<KeepNCheckpoints>({1}),
                       use<KeepBestCheckpoints>({"score", "max", 2})};
  return options;
}

/// \return updates that were done now
int64_t train(const TrainerOptions& options,
              Names* warnings = nullptr,
              const LoadFrom& from = LoadFrom()) {
  Trainer trainer(options, quiet_log(warnings));
  return trainer.fit(tiny_loader("train"), {tiny_loader("val")}, from).steps_now;
}

Names checkpoint_files_in(const fs::path& directory) {
  Names names = real_file_system()->list(directory);
  names.erase(
      std::remove_if(names.begin(),
                     names.end(),
                     [](const std::string& name) { return name.find(".pt") == std::string::npos; }),
      names.end());
  return names;
}

bool has_line_with(const Names& lines, const std::string& one, const std::string& other = "") {
  return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
    return line.find(one) != std::string::npos && line.find(other) != std::string::npos;
  });
}

std::string fit_error(const TrainerOptions& options) {
  try {
    train(options);
  } catch (const Error&) {
    return describe(std::current_exception());
  }
  return "";
}

}  // namespace

TEST_CASE("a copy of a run that goes on leaves the files of the run that it was copied from") {
  const TempDir dir;
  train(keeping_options(dir / "a", 4));
  fs::copy(dir / "a", dir / "b", fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  train(keeping_options(dir / "b", 6));
  CHECK(checkpoint_files_in(dir / "a") == Names{"checkpoint_4.pt"});
  CHECK(checkpoint_files_in(dir / "a/best") == Names{"checkpoint_2.pt", "checkpoint_4.pt"});
  CHECK(checkpoint_files_in(dir / "b") == Names{"checkpoint_6.pt"});
  CHECK(checkpoint_files_in(dir / "b/best") == Names{"checkpoint_4.pt", "checkpoint_6.pt"});
}

TEST_CASE("T114: a run that was moved goes on removing its own older files") {
  const TempDir dir;
  TrainerOptions options = keeping_options(dir / "a", 4);
  options.callbacks.push_back(use<KeepNCheckpoints>({2}));
  options.callbacks.erase(options.callbacks.begin() + 1);
  train(options);
  fs::rename(dir / "a", dir / "b");
  options.model_dir = dir / "b";
  options.loop.max_steps = 8;
  train(options);
  CHECK(checkpoint_files_in(dir / "b") == Names{"checkpoint_6.pt", "checkpoint_8.pt"});
  CHECK(checkpoint_files_in(dir / "b/best") == Names{"checkpoint_6.pt", "checkpoint_8.pt"});
}

TEST_CASE("T114: a run that begins with another run's file keeps the older files of its own") {
  const TempDir dir;
  train(keeping_options(dir / "other", 6));
  train(directory_options(dir / "run", 4));
  train(keeping_options(dir / "run", 8), nullptr, dir / "other/checkpoint_6.pt");
  CHECK(checkpoint_files_in(dir / "run") ==
        Names{"checkpoint_2.pt", "checkpoint_4.pt", "checkpoint_8.pt"});
}

TEST_CASE("states that hold whole paths are taken for names of this run's files") {
  const TempDir dir;
  train(keeping_options(dir / "run", 4));
  const fs::path file = dir / "run/checkpoint_4.pt";
  StateDict state = read_checkpoint(file);
  StateDict& callback = state.find("callbacks/KeepBestCheckpoints")->as_dict();
  const StateDict kept = callback.at("kept").as_list().at(0).as_dict();
  CHECK(kept.at("path").as_string() == "checkpoint_2.pt");
  const fs::path elsewhere = dir / "elsewhere/best/checkpoint_2.pt";
  callback.set("kept", StateList{StateDict{{"path", elsewhere.string()}, {"value", 2.0}}});
  write_checkpoint(*real_file_system(), file, state);
  train(keeping_options(dir / "run", 6));
  CHECK(checkpoint_files_in(dir / "run/best") == Names{"checkpoint_4.pt", "checkpoint_6.pt"});
}

TEST_CASE("a run whose checkpoints are all gone does not begin afresh by itself") {
  const TempDir dir;
  TrainerOptions options = directory_options(dir / "run", 4);
  options.checkpoint.checkpoint_root = dir / "files";
  train(options);
  fs::rename(dir / "files", dir / "unmounted");
  options.loop.max_steps = 6;
  const std::string error = fit_error(options);
  CHECK(error.find("checkpoint_4.pt") != std::string::npos);
  CHECK(error.find("--checkpoint none") != std::string::npos);
  fs::remove(dir / "files");
  fs::rename(dir / "unmounted", dir / "files");
  CHECK(train(options) == 2);
}

TEST_CASE("a run whose checkpoints are all gone begins afresh when it is told to load nothing") {
  const TempDir dir;
  train(directory_options(dir / "run", 4));
  fs::remove(dir / "run/checkpoint_2.pt");
  fs::remove(dir / "run/checkpoint_4.pt");
  Names warnings;
  CHECK(train(directory_options(dir / "run", 6), &warnings, LoadFrom::nothing()) == 6);
  CHECK(train(directory_options(dir / "run", 8), &warnings) == 2);
}

TEST_CASE("only a fit takes what is gone out of the index") {
  const TempDir dir;
  const TrainerOptions options = directory_options(dir / "run", 4);
  train(options);
  fs::remove(dir / "run/checkpoint_2.pt");
  const CheckpointIndex index(real_file_system(), dir / "run", CheckpointName());
  {
    Trainer trainer(options, quiet_log());
    trainer.validate(tiny_loader("val"));
    CHECK(trainer.validate_all_indexed({tiny_loader("val")}).rows.size() == 1);
  }
  CHECK(index.listed().size() == 2);
  Names warnings;
  train(directory_options(dir / "run", 6), &warnings);
  CHECK(index.listed().size() == 2);  // 4 and 6
  CHECK(has_line_with(warnings, "checkpoint_2.pt"));
}

TEST_CASE("a run that moves together with its checkpoints elsewhere finds them by their names") {
  const TempDir dir;
  TrainerOptions options = directory_options(dir / "old/run", 4);
  options.checkpoint.checkpoint_root = dir / "old/files";
  train(options);
  fs::rename(dir / "old", dir / "new");
  options.model_dir = dir / "new/run";
  options.checkpoint.checkpoint_root = dir / "new/files";
  {
    Trainer trainer(options, quiet_log());
    trainer.load_checkpoint({});
    CHECK(trainer.state().global_step() == 4);
  }
  options.loop.max_steps = 6;
  CHECK(train(options) == 2);
  CHECK_FALSE(fs::exists(dir / "old"));
  const CheckpointIndex index(real_file_system(), dir / "new/run", CheckpointName());
  CHECK(index.newest() == dir / "new/files/checkpoint_6.pt");
  CHECK(index.listed().front() == dir / "new/files/checkpoint_2.pt");
}

TEST_CASE("runs that save in one directory leave each other's files, and name them by their own") {
  const TempDir dir;
  const auto options_for = [&](const char* name) {
    TrainerOptions options = directory_options(dir / name, 4);
    options.checkpoint.checkpoint_root = dir / "files";
    options.checkpoint.checkpoint_name = "{run_name}_{step}.pt";
    options.callbacks = {use<KeepNCheckpoints>({1})};
    return options;
  };
  CHECK(train(options_for("a")) == 4);
  CHECK(train(options_for("b/")) == 4);
  CHECK(checkpoint_files_in(dir / "files") == Names{"a_4.pt", "b_4.pt"});
  CHECK(train(options_for("a")) == 0);
}

TEST_CASE("a resumed run goes on with the checkpoint's numbers, and warns of other ones") {
  const TempDir dir;
  TrainerOptions options = directory_options(dir / "run", 4);
  options.sparsity.sparsity = 0.5;
  train(options);
  Names warnings;
  options.loop.max_steps = 6;
  train(options, &warnings);
  CHECK_FALSE(has_line_with(warnings, "seed"));
  CHECK_FALSE(has_line_with(warnings, "lr"));
  CHECK_FALSE(has_line_with(warnings, "sparsity"));
  options.loop.max_steps = 8;
  options.seed = 77;
  options.sparsity.sparsity = 0.75;
  options.optimizer = use<Sgd>({0.75});
  train(options, &warnings);
  CHECK(has_line_with(warnings, "seed", "77"));
  CHECK(has_line_with(warnings, "lr", "0.75"));
  CHECK(has_line_with(warnings, "sparsity", "0.5"));
  options.loop.max_steps = 10;
  options.sparsity.sparsity = 0.0;
  options.schedulers = {use<ConstantLR>({0.75})};
  warnings.clear();
  train(options, &warnings);
  CHECK(has_line_with(warnings, "sparsity masks"));
  CHECK_FALSE(has_line_with(warnings, "lr of"));  // the scheduler's number is used
}

TEST_CASE("T103: under another checkpoint_name a run goes on from what its index lists") {
  const TempDir dir;
  train(directory_options(dir / "run", 4));
  TrainerOptions options = directory_options(dir / "run", 6);
  options.checkpoint.checkpoint_name = "checkpoint_{step}.pt.zst";
  CHECK(train(options) == 2);
  fs::remove(dir / "run/checkpoint_6.pt.zst");
  CHECK(train(options) == 2);
  CHECK(fs::exists(dir / "run/checkpoint_6.pt.zst"));
}

TEST_CASE("T112: a restart saves no second initial checkpoint, and ends in the same bits") {
  const TempDir dir;
  const auto options_for = [&](const char* name, int64_t max_steps) {
    TrainerOptions options = directory_options(dir / name, max_steps);
    options.checkpoint.save_initial_checkpoint = true;
    options.callbacks = {use<SaveCheckpointState>({2})};
    return options;
  };
  train(options_for("straight", 6));
  train(options_for("resumed", 2));
  train(options_for("resumed", 6));
  for (const char* file : {"checkpoint_4.pt", "checkpoint_6.pt"}) {
    const StateDict a = read_checkpoint(dir / "straight" / file);
    const StateDict b = read_checkpoint(dir / "resumed" / file);
    CHECK(first_difference(a.at("callbacks/SaveCheckpointState").as_dict(),
                           b.at("callbacks/SaveCheckpointState").as_dict())
              .empty());
  }
  CHECK(checkpoint_files_in(dir / "resumed").size() ==
        checkpoint_files_in(dir / "straight").size());
}

TEST_CASE("after a rollback a resume names the newest save, which is not the newest update") {
  const TempDir dir;
  train(directory_options(dir / "run", 6));
  train(directory_options(dir / "run", 4), nullptr, dir / "run/checkpoint_2.pt");
  Names warnings;
  CHECK(train(directory_options(dir / "run", 8), &warnings) == 2);
  const auto published =
      CheckpointIndex(real_file_system(), dir / "run", CheckpointName()).listed().at(3);
  CHECK(has_line_with(warnings, "checkpoint_6.pt", published.filename().string()));
  warnings.clear();
  CHECK(train(directory_options(dir / "run", 10), &warnings) == 2);
  CHECK_FALSE(has_line_with(warnings, "checkpoint_6.pt"));
}

TEST_CASE("leftovers of a dead run are removed from best/ too") {
  const TempDir dir;
  train(keeping_options(dir / "run", 2));
  const fs::path stale = dir / "run/best/checkpoint_4.pt.01234567.tmp";
  fs::copy_file(dir / "run/checkpoint_2.pt", stale);
  train(keeping_options(dir / "run", 4));
  CHECK_FALSE(fs::exists(stale));
}

TEST_SUITE_END();
