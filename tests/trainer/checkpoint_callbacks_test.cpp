#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "callbacks/builtin/keep_best_checkpoints.h"
#include "callbacks/builtin/keep_n_checkpoints.h"
#include "callbacks/builtin/load_checkpoint_states.h"
#include "callbacks/builtin/save_checkpoint_state.h"
#include "checkpoint/checkpoint_file.h"
#include "checkpoint/checkpoint_index.h"
#include "core/error.h"
#include "loops/fit_run.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace fs = std::filesystem;

TEST_SUITE_BEGIN("trainer/checkpoint_callbacks");

namespace {

TrainerOptions run_options(const fs::path& model_dir, int64_t steps = 2) {
  TrainerOptions options = tiny_options(model_dir);
  options.loop.max_steps = 10;
  options.checkpoint.steps = steps;
  return options;
}

/// Logs a value of the test's choice in each validation.
class FakeMetric final : public Callback {
 public:
  struct Options {
    std::map<int64_t, double> by_update;
  };

  explicit FakeMetric(const Options& options) : options_(options) {}

  void on_validate_end(Trainer& trainer, Model&, Loop&) override {
    const auto found = options_.by_update.find(trainer.state().global_step());
    if (found != options_.by_update.end()) {
      trainer.state().last_metrics.set("score", found->second);
    }
  }

 private:
  Options options_;
};

std::vector<std::string> names_in(const fs::path& directory) {
  return real_file_system()->list(directory);
}

}  // namespace

TEST_CASE("T115, C54: every k-th save and the last are written in part, outside of the index") {
  const TempDir dir;
  TrainerOptions options = run_options(dir / "run");
  options.callbacks = {use<SaveCheckpointState>({2}), use<KeepNCheckpoints>({1})};
  Trainer(options, quiet_log()).fit(tiny_loader("train"));
  for (const char* name :
       {"run/model_checkpoint_4.pt", "run/model_checkpoint_8.pt", "run/model_checkpoint_10.pt"}) {
    CAPTURE(name);
    REQUIRE(fs::exists(dir / name));
    CHECK(read_checkpoint(dir / name).names() == std::vector<std::string>{"model", "__metadata__"});
  }
  CHECK_FALSE(fs::exists(dir / "run/model_checkpoint_2.pt"));
  const CheckpointIndex index(real_file_system(), dir / "run", CheckpointName());
  CHECK(index.listed().size() == 1);
}

TEST_CASE("T115: a part that a run died before writing is written by its restart") {
  const TempDir dir;
  TrainerOptions options = run_options(dir / "run");
  options.callbacks = {use<SaveCheckpointState>({1})};
  Trainer(options, quiet_log()).fit(tiny_loader("train"));
  fs::remove(dir / "run/model_checkpoint_8.pt");
  fs::remove(dir / "run/model_checkpoint_10.pt");
  options.loop.max_steps = 12;
  Trainer(options, quiet_log()).fit(tiny_loader("train"));
  CHECK(fs::exists(dir / "run/model_checkpoint_10.pt"));
  CHECK_FALSE(fs::exists(dir / "run/model_checkpoint_8.pt"));  // not what the restart went on from
  options.model_dir = dir / "other";
  Trainer(options, quiet_log()).fit(tiny_loader("train"), {}, dir / "run/checkpoint_8.pt");
  CHECK_FALSE(fs::exists(dir / "run/model_checkpoint_8.pt"));  // another run's
}

TEST_CASE("T115: a section that is not there is an error that lists those that are") {
  const TempDir dir;
  TrainerOptions options = run_options(dir / "run");
  options.callbacks = {use<SaveCheckpointState>({1, {"model", "modle"}})};
  Trainer trainer(options, quiet_log());
  try {
    trainer.fit(tiny_loader("train"));
    FAIL("did not throw");
  } catch (const Error&) {
    const std::string text = describe(std::current_exception());
    CHECK(text.find("modle") != std::string::npos);
    CHECK(text.find("optimizer") != std::string::npos);
  }
}

TEST_CASE("T113: chosen sections begin a run at update 0, and the run itself resumes whole") {
  const TempDir dir;
  Trainer(run_options(dir / "first"), quiet_log()).fit(tiny_loader("train"));
  TrainerOptions options = run_options(dir / "second");
  options.callbacks = {use<LoadCheckpointStates>({{"model"}})};
  {
    Trainer trainer(options, quiet_log());
    CHECK(trainer.fit(tiny_loader("train"), {}, dir / "first/checkpoint_10.pt").steps_now == 10);
  }
  options.loop.max_steps = 12;
  Trainer again(options, quiet_log());
  CHECK(again.fit(tiny_loader("train")).steps_now == 2);
  options.model_dir = dir / "third";
  Trainer chained(options, quiet_log());  // its source had the callback too
  CHECK(chained.fit(tiny_loader("train"), {}, dir / "second/checkpoint_12.pt").steps_now == 12);
  options.callbacks = {use<LoadCheckpointStates>({{"modle"}})};
  options.model_dir = dir / "fourth";
  Trainer wrong(options, quiet_log());
  CHECK_THROWS_AS(wrong.load_checkpoint(dir / "first/checkpoint_10.pt"), Error);
}

TEST_CASE("the checkpoints that validated best are kept, whatever becomes of the others") {
  for (const bool async : {false, true}) {
    CAPTURE(async);
    const TempDir dir;
    TrainerOptions options = run_options(dir / "run");
    options.checkpoint.async = async;
    options.loop.eval_frequency = 2;
    FakeMetric::Options scores;
    scores.by_update = {{2, 0.5}, {4, 0.9}, {6, 0.7}, {8, 0.1}, {10, 0.8}};
    options.callbacks = {use<FakeMetric>(scores),
                         use<KeepNCheckpoints>({1}),
                         use<KeepBestCheckpoints>({"score", "max", 2})};
    options.loop.max_steps = 6;
    Trainer(options, quiet_log()).fit(tiny_loader("train"), {tiny_loader("val")});
    options.loop.max_steps = 10;
    Trainer(options, quiet_log()).fit(tiny_loader("train"), {tiny_loader("val")});
    CHECK(names_in(dir / "run/best") ==
          std::vector<std::string>{"checkpoint_10.pt", "checkpoint_4.pt"});
    CHECK(read_checkpoint(dir / "run/best/checkpoint_4.pt").at("global_step").as_int() == 4);
    CHECK_FALSE(fs::exists(dir / "run/checkpoint_4.pt"));
  }
}

TEST_CASE("a run whose saves and validations never meet before its end says so before it begins") {
  const auto warnings_of = [](int64_t saves, const Time& validations) {
    const TempDir dir;
    TrainerOptions options = run_options(dir / "run", saves);
    options.loop.eval_frequency = validations;
    options.callbacks = {use<KeepBestCheckpoints>({"loss", "min", 1})};
    std::vector<std::string> lines;
    Trainer trainer(options, quiet_log(&lines));
    trainer.start_fit(tiny_loader("train"), {tiny_loader("val")});
    return std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
      return line.find("KeepBestCheckpoints") != std::string::npos;
    });
  };
  CHECK(warnings_of(3, 4) == 1);
  CHECK(warnings_of(3, 1.0) == 1);
  CHECK(warnings_of(3, "2ep") == 1);  // 5 updates an epoch
  CHECK(warnings_of(0, 2) == 1);
  CHECK(warnings_of(2, 0) == 1);
  CHECK(warnings_of(2, 4) == 0);
  CHECK(warnings_of(3, 2) == 0);  // at 6
  CHECK(warnings_of(5, "1ep") == 0);
  CHECK(warnings_of(10, 1.0) == 0);  // one save and one validation, as asked for
}

TEST_CASE("what is best by one metric stays when another metric finds it behind") {
  const TempDir dir;
  TrainerOptions options = run_options(dir / "run");
  options.loop.eval_frequency = 2;
  FakeMetric::Options scores;
  scores.by_update = {{2, 0.5}, {4, 0.9}, {6, 0.1}, {8, 0.7}, {10, 0.7}};
  options.callbacks = {use<FakeMetric>(scores),
                       use<KeepBestCheckpoints>({"score", "max", 1}),
                       use<KeepBestCheckpoints>({"score", "min", 1})};
  Trainer(options, quiet_log()).fit(tiny_loader("train"), {tiny_loader("val")});
  CHECK(names_in(dir / "run/best") ==
        std::vector<std::string>{"checkpoint_4.pt", "checkpoint_6.pt"});
}

TEST_CASE("a file beside a checkpoint that cannot be written is a failed save: on_error decides") {
  for (const bool async : {false, true}) {
    CAPTURE(async);
    const TempDir dir;
    TrainerOptions options = run_options(dir / "run");
    options.checkpoint.async = async;
    options.loop.eval_frequency = 4;
    FakeMetric::Options scores;
    scores.by_update = {{4, 0.5}, {8, 0.4}, {10, 0.3}};
    options.callbacks = {use<FakeMetric>(scores),
                         use<SaveCheckpointState>({3}),
                         use<KeepBestCheckpoints>({"score", "min"})};
    fs::create_directories(dir / "run/model_checkpoint_6.pt");
    real_file_system()->create(dir / "run/best")->close();
    CHECK_THROWS_AS(Trainer(options, quiet_log()).fit(tiny_loader("train"), {tiny_loader("val")}),
                    Error);
    options.model_dir = dir / "warned";
    options.checkpoint.on_error = "warn";
    fs::create_directories(dir / "warned/model_checkpoint_6.pt");
    real_file_system()->create(dir / "warned/best")->close();
    std::vector<std::string> lines;
    Trainer trainer(options, quiet_log(&lines));
    const FitResult result = trainer.fit(tiny_loader("train"), {tiny_loader("val")});
    CHECK(result.steps == 10);
    CHECK(result.saves.failed == 4);   // the part at 6, the best at 4, 8 and 10
    CHECK(result.saves.written == 4);  // whole and with their parts: all but that at 6
    CHECK(std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
            return line.find("model_checkpoint_6.pt") != std::string::npos ||
                   line.find("warned/best") != std::string::npos;
          }) == 4);
    CHECK(fs::exists(dir / "warned/model_checkpoint_10.pt"));
  }
}

TEST_CASE("options out of range are refused") {
  CHECK_THROWS_AS(SaveCheckpointState({0}), UsageError);
  CHECK_THROWS_AS(LoadCheckpointStates(LoadCheckpointStates::Options{}), UsageError);
  CHECK_THROWS_AS(KeepBestCheckpoints({"", "min", 1}), UsageError);
  CHECK_THROWS_AS(KeepBestCheckpoints({"loss", "up", 1}), UsageError);
  CHECK_THROWS_AS(KeepBestCheckpoints({"loss", "min", 0}), UsageError);
}

TEST_SUITE_END();
