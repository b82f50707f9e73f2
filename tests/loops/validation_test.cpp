#include <doctest/doctest.h>
#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "callbacks/core/early_exit_callback.h"
#include "callbacks/core/validation_callback.h"
#include "callbacks/global_callbacks.h"
#include "checkpoint/checkpoint_file.h"
#include "core/error.h"
#include "loops/sample_stream.h"
#include "support/probe_callback.h"
#include "support/recording_callback.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

using Names = std::vector<std::string>;

TrainerOptions probed(const TempDir& dir, const ProbeCallback::Options& probe) {
  TrainerOptions options = tiny_options(dir / "run");
  options.callbacks = {use<ProbeCallback>(probe)};
  return options;
}

/// A run with one checkpoint, after 2 updates.
void train_once(const TempDir& dir) {
  TrainerOptions options = tiny_options(dir / "run");
  options.loop.max_steps = 2;
  options.checkpoint.steps = 2;
  Trainer(options, quiet_log()).fit(tiny_loader("train"));
}

/// A validation of one loader that counts how often it ran.
class Extra final : public ValidationCallback {
 public:
  struct Options {
    std::vector<int64_t>* ran_at = nullptr;  ///< update counts
    int64_t every_n_vals = 1;
  };

  explicit Extra(const Options& options)
      : ValidationCallback("extra", options.every_n_vals), ran_at_(options.ran_at) {}

 protected:
  void validate(Trainer& trainer) override {
    ran_at_->push_back(trainer.state().global_step());
    trainer.validate(tiny_loader("more", 4), LoadFrom::nothing());
  }

 private:
  std::vector<int64_t>* ran_at_;
};

}  // namespace

TEST_SUITE_BEGIN("loops/validation");

TEST_CASE("T42: a validation loads the newest checkpoint, or nothing when told so") {
  const TempDir dir;
  train_once(dir);
  Trainer newest(tiny_options(dir / "run"), quiet_log());
  newest.validate(tiny_loader("val"));
  CHECK(newest.state().global_step() == 2);
  Trainer fresh(tiny_options(dir / "run"), quiet_log());
  fresh.validate(tiny_loader("val"), LoadFrom::nothing());
  CHECK(fresh.state().global_step() == 0);
}

TEST_CASE("an evaluation that finds no checkpoint says so, unless it was told to load nothing") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.optimizer = {};
  std::vector<std::string> lines;
  Trainer trainer(options, quiet_log(&lines));
  const auto is_told = [&] {
    return std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
      return line.find("no checkpoint") != std::string::npos;
    });
  };
  trainer.validate(tiny_loader("val"), LoadFrom::nothing());
  CHECK_FALSE(is_told());
  trainer.validate(tiny_loader("val"));
  CHECK(is_told());
}

TEST_CASE("T42: after a fit a validation takes the model as it is") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.loop.max_steps = 2;
  options.checkpoint.steps = 2;
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train"));
  const torch::NoGradGuard no_grad;
  for (at::Tensor& parameter : trainer.state().model->module().parameters()) {
    parameter.zero_();
  }
  const double expected = std::log(3.0);  // of three classes that are equally likely
  CHECK(*trainer.validate(tiny_loader("val")).number("val/loss") == doctest::Approx(expected));
  trainer.load_checkpoint({});
  CHECK(*trainer.validate(tiny_loader("val")).number("val/loss") != doctest::Approx(expected));
}

TEST_CASE("T43, P15: every validation begins at the loader's first batch") {
  const TempDir dir;
  std::vector<at::Tensor> seen;
  ProbeCallback::Options probe;
  probe.validate_batch_start = [&](Trainer&, const Batch& batch) { seen.push_back(batch["x"]); };
  TrainerOptions options = probed(dir, probe);
  options.loop.eval_steps = 2;
  Trainer trainer(options, quiet_log());
  const DataLoader loader = tiny_loader("val");
  trainer.validate(loader);
  trainer.validate(loader);
  REQUIRE(seen.size() == 4);  // no more than eval_steps batches
  CHECK(seen[0].equal(seen[2]));
  CHECK(seen[1].equal(seen[3]));
}

TEST_CASE("T67, P15: a validation is one full pass; with eval_steps it stops there") {
  const auto batches_with = [](const std::optional<Time>& eval_steps) {
    const TempDir dir;
    int batches = 0;
    ProbeCallback::Options probe;
    probe.validate_batch_start = [&](Trainer&, const Batch&) { ++batches; };
    TrainerOptions options = probed(dir, probe);
    options.loop.eval_steps = eval_steps;
    Trainer trainer(options, quiet_log());
    trainer.validate(tiny_loader("val"));  // 5 batches
    return batches;
  };
  CHECK(batches_with(std::nullopt) == 5);
  CHECK(batches_with(3) == 3);
  CHECK(batches_with(8) == 5);
  CHECK(batches_with(0.5) == 3);  // rounded up
  CHECK(batches_with(1.0) == 5);
}

TEST_CASE("P15: what has no size is validated for a number of batches, not for a share") {
  const TempDir dir;
  int batches = 0;
  ProbeCallback::Options probe;
  probe.validate_batch_start = [&](Trainer&, const Batch&) { ++batches; };
  TrainerOptions options = probed(dir, probe);
  const DataLoader endless = stream_loader();
  options.loop.eval_steps = 3;
  Trainer(options, quiet_log()).validate(endless);
  CHECK(batches == 3);
  options.loop.eval_steps = 0.5;
  Trainer trainer(options, quiet_log());
  CHECK_THROWS_AS(trainer.validate(endless), UsageError);
  CHECK_THROWS_AS(trainer.fit(tiny_loader("train"), {endless}), UsageError);
  CHECK(trainer.state().global_step() == 0);  // before anything is trained
}

TEST_CASE("T44: gradients are off in validation steps") {
  const TempDir dir;
  bool is_on = true;
  ProbeCallback::Options probe;
  probe.after_forward = [&](Outputs& outputs) { is_on = outputs["loss"].requires_grad(); };
  Trainer trainer(probed(dir, probe), quiet_log());
  trainer.validate(tiny_loader("val"));
  CHECK_FALSE(is_on);
}

TEST_CASE(
    "T45, C38: the model is in eval mode while validating and in train mode in the next stage") {
  const TempDir dir;
  std::vector<bool> training;
  ProbeCallback::Options probe;
  const auto note = [&](Trainer& trainer, const Batch&) {
    training.push_back(trainer.state().model->module().is_training());
  };
  probe.train_batch_start = note;
  probe.validate_batch_start = note;
  TrainerOptions options = probed(dir, probe);
  options.loop.max_steps = 2;
  options.loop.eval_frequency = 1;
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train"), {tiny_loader("val", 2)});
  CHECK(training == std::vector<bool>{true, false, true, false});
}

TEST_CASE("T46: a validation within a fit leaves the count of updates alone") {
  const TempDir dir;
  std::vector<int64_t> counts;
  ProbeCallback::Options probe;
  probe.validate_batch_start = [&](Trainer& trainer, const Batch&) {
    counts.push_back(trainer.state().global_step());
  };
  TrainerOptions options = probed(dir, probe);
  options.loop.max_steps = 4;
  options.loop.eval_frequency = 2;
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train"), {tiny_loader("val", 4)});
  CHECK(counts == std::vector<int64_t>{2, 2, 4, 4});
}

TEST_CASE("T47, T48: a loop with hooks of its own fires them in place of the validate hooks") {
  const TempDir dir;
  Names custom;
  Names hooks;
  ProbeCallback::Options probe;
  probe.custom = [&](Trainer&, std::string_view hook) {
    custom.emplace_back(hook);
    return true;
  };
  RecordingCallback::Options recording;
  recording.hooks = &hooks;
  TrainerOptions options = tiny_options(dir / "run");
  options.callbacks = {use<ProbeCallback>(probe), use<RecordingCallback>(recording)};
  Trainer trainer(options, quiet_log());
  hooks.clear();
  ValidationLoop loop({std::nullopt, "score"});
  trainer.validate(tiny_loader("val", 2), loop);
  CHECK(custom == Names{"on_score_start",
                        "on_score_batch_start",
                        "on_score_step_start",
                        "on_score_step_end",
                        "on_score_batch_end",
                        "on_score_end"});
  CHECK(hooks == Names{"on_enter_validate",
                       "on_before_load_checkpoint",
                       "on_before_forward",
                       "on_after_network",
                       "on_before_loss",
                       "on_after_loss",
                       "on_after_forward"});
  HookArgs args;
  CHECK_THROWS_AS(trainer.call("on_score_start", args), UsageError);  // no longer allowed
}

TEST_CASE("T50: the loop of one validation is a global callback, the last, while it runs") {
  const TempDir dir;
  std::vector<Callback*> global;
  ProbeCallback::Options probe;
  probe.validate_batch_start = [&](Trainer&, const Batch&) { global = global_callbacks(); };
  ProbeCallback other({});
  const GlobalCallbackScope scope(other);
  Trainer trainer(probed(dir, probe), quiet_log());
  ValidationLoop loop;
  trainer.validate(tiny_loader("val"), loop);
  CHECK(global == std::vector<Callback*>{&other, &loop});
  CHECK(global_callbacks() == std::vector<Callback*>{&other});
}

TEST_CASE("T52, T56: validate_all tells the checkpoints, and runs own validations once for each") {
  const TempDir dir;
  train_once(dir);
  Paths told;
  int runs = 0;
  ProbeCallback::Options probe;
  probe.enter_validate_all = [&](const Paths& checkpoints) { told = checkpoints; };
  probe.run_validation = [&](std::optional<int64_t> loop_idx, bool is_last) {
    ++runs;
    CHECK_FALSE(loop_idx);
    CHECK(is_last);
  };
  Trainer trainer(probed(dir, probe), quiet_log());
  const std::string file = (dir / "run/checkpoint_2.pt").string();
  std::filesystem::copy(file, dir / "run/copy_2.pt");
  trainer.validate_all({tiny_loader("a"), tiny_loader("b")}, {file, (dir / "run/copy*").string()});
  CHECK(told == Paths{file, dir / "run/copy_2.pt"});
  CHECK(runs == 2);
}

TEST_CASE("T57: run_validation gets the stage's index, and whether it is the last") {
  const TempDir dir;
  std::vector<std::pair<int64_t, bool>> calls;
  ProbeCallback::Options probe;
  probe.run_validation = [&](std::optional<int64_t> loop_idx, bool is_last) {
    calls.emplace_back(loop_idx.value_or(-1), is_last);
  };
  TrainerOptions options = probed(dir, probe);
  options.loop.max_steps = 5;
  options.loop.eval_frequency = 2;
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train"), {tiny_loader("val", 2)});
  CHECK(calls == std::vector<std::pair<int64_t, bool>>{{0, false}, {1, false}, {2, true}});
}

TEST_CASE("T57: a validation that is made up for after a resume has the index of its stage") {
  for (const Time& frequency : {Time(2), Time(1.0)}) {
    CAPTURE(frequency.to_string());
    const TempDir dir;
    std::vector<std::pair<int64_t, bool>> calls;
    const auto fit = [&](int64_t stops_at) {
      ProbeCallback::Options probe;
      probe.run_validation = [&](std::optional<int64_t> loop_idx, bool is_last) {
        calls.emplace_back(loop_idx.value_or(-1), is_last);
      };
      probe.validate_batch_start = [stops_at](Trainer& trainer, const Batch&) {
        if (trainer.state().global_step() == stops_at) {
          trainer.request_stop("enough");
        }
      };
      TrainerOptions options = probed(dir, probe);
      options.loop.max_steps = 5;
      options.loop.eval_frequency = frequency;
      options.checkpoint.steps = 5;
      Trainer(options, quiet_log()).fit(tiny_loader("train"), {tiny_loader("val")});
    };
    fit(5);
    const size_t before = calls.size();
    fit(-1);
    REQUIRE(calls.size() == before + 1);
    CHECK(calls.back() ==
          std::pair<int64_t, bool>(frequency.unit() == TimeUnit::Update ? 2 : 0, true));
  }
}

TEST_CASE("T60: eval_frequency 0 makes one stage without validation, and a warning") {
  for (const Time& frequency : {Time(0), Time(0.0)}) {
    const TempDir dir;
    Names hooks;
    Names warnings;
    RecordingCallback::Options recording;
    recording.hooks = &hooks;
    TrainerOptions options = tiny_options(dir / "run");
    options.callbacks = {use<RecordingCallback>(recording)};
    std::vector<MemoryLogger::Entry> entries;
    options.loggers = {use<MemoryLogger>({&entries})};
    options.loop.max_steps = 4;
    options.loop.eval_frequency = frequency;
    Trainer trainer(options, quiet_log(&warnings));
    trainer.fit(tiny_loader("train"), {tiny_loader("val")});
    const auto count = [&](const char* name) {
      return std::count(hooks.begin(), hooks.end(), name);
    };
    CHECK(count("on_train_start") == 1);
    CHECK(count("on_enter_validate_all") == 0);
    CHECK(count("on_enter_validate") == 0);
    REQUIRE(warnings.size() == 1);
    CHECK(warnings[0].find("eval_frequency") != std::string::npos);
  }
}

TEST_CASE("T62: without any loader the validation at the end still calls its hooks once") {
  const TempDir dir;
  Names hooks;
  RecordingCallback::Options recording;
  recording.hooks = &hooks;
  TrainerOptions options = tiny_options(dir / "run");
  options.callbacks = {use<RecordingCallback>(recording)};
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train"));
  CHECK(std::count(hooks.begin(), hooks.end(), "on_enter_validate_all") == 1);
  CHECK(std::count(hooks.begin(), hooks.end(), "run_validation") == 1);
  CHECK(std::count(hooks.begin(), hooks.end(), "on_enter_validate") == 0);
}

TEST_CASE("T117: an early exit in a validation ends the fit around it; later runs start clean") {
  const TempDir dir;
  int batches = 0;
  ProbeCallback::Options probe;
  probe.validate_batch_start = [&](Trainer&, const Batch&) { ++batches; };
  TrainerOptions options = probed(dir, probe);
  options.loop.max_steps = 9;
  options.loop.eval_frequency = 3;
  Trainer trainer(options, quiet_log());
  trainer.slot<EarlyExitCallback>().add([&] { return batches == 2; });
  const Loaders val = {tiny_loader("val")};
  CHECK(trainer.fit(tiny_loader("train"), val).steps == 3);
  CHECK(batches == 2);
  CHECK(trainer.fit(tiny_loader("train"), val).steps == 9);
  CHECK(batches == 2 + 5 * 2);
}

TEST_CASE("T117: a function for early exit may remove itself") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.loop.max_steps = 4;
  Trainer trainer(options, quiet_log());
  auto& exits = trainer.slot<EarlyExitCallback>();
  int asked = 0;
  EarlyExitCallback::Handle own = 0;
  own = exits.add([&, text = std::string(100, 'x')] {
    exits.remove(own);
    ++asked;
    return text.empty();
  });
  int others = 0;
  exits.add([&] { return ++others > 100; });
  CHECK(trainer.fit(tiny_loader("train")).steps == 4);
  CHECK(asked == 1);
  CHECK(others >= 4);
}

TEST_CASE("T128: a validation callback of every second validation runs at 2, 4 and the last") {
  const TempDir dir;
  std::vector<int64_t> ran_at;
  Extra::Options extra;
  extra.ran_at = &ran_at;
  extra.every_n_vals = 2;
  TrainerOptions options = tiny_options(dir / "run");
  options.callbacks = {use<Extra>(extra)};
  options.loop.max_steps = 5;
  options.loop.eval_frequency = 1;
  Trainer trainer(options, quiet_log());
  const FitResult result = trainer.fit(tiny_loader("train"), {tiny_loader("val", 4)});
  CHECK(ran_at == std::vector<int64_t>{2, 4, 5});
  CHECK(result.metrics.number("val/loss"));
  CHECK(result.metrics.number("extra/more/loss"));
  ran_at.clear();
  const ValidationTable table = trainer.validate_all({tiny_loader("val", 4)});
  CHECK(ran_at == std::vector<int64_t>{5});
  CHECK(table.rows.at(0).metrics.number("extra/more/loss"));
  CHECK_THROWS_AS(Extra({&ran_at, 0}), UsageError);
}

TEST_CASE("T20: global validation callbacks are found after the Trainer's own") {
  const TempDir dir;
  std::vector<int64_t> ran_at;
  Extra::Options extra;
  extra.ran_at = &ran_at;
  TrainerOptions options = tiny_options(dir / "run");
  options.callbacks = {use<ProbeCallback>(), use<Extra>(extra)};
  const Trainer trainer(options, quiet_log());
  CHECK(validation_callbacks(trainer).size() == 1);
  Extra global(extra);
  const GlobalCallbackScope scope(global);
  const auto all = validation_callbacks(trainer);
  REQUIRE(all.size() == 2);
  CHECK(all[1] == &global);
}

TEST_CASE(
    "C90, P22: predictions are the outputs of all batches in order, on the host and in a file") {
  for (const char* mode : {"eager", "traced"}) {
    const TempDir dir;
    TrainerOptions options = tiny_options(dir / "run");
    options.backend.mode = mode;
    Trainer trainer(options, quiet_log());
    trainer.fit(tiny_loader("train"));
    const Outputs outputs = trainer.predict(tiny_loader("val", 9, 2));  // the last batch is short
    const Outputs whole = trainer.predict(tiny_loader("val", 9, 9));
    CHECK(outputs["logits"].allclose(whole["logits"]));
    CHECK(outputs["logits"].size(0) == 9);
    CHECK(outputs["logits"].device().is_cpu());
    // In order: each row is what the model says of that sample alone.
    const Outputs one_by_one = trainer.predict(tiny_loader("val", 9, 1));
    CHECK(outputs["logits"].allclose(one_by_one["logits"]));
    CHECK_FALSE(outputs["logits"].allclose(outputs["logits"].flip(0)));
    CHECK(outputs["loss"].size(0) == 5);
    CHECK_FALSE(trainer.state().model->module().is_training());
    const StateDict file = read_checkpoint(trainer.state().artifact_dir / "predictions.pt");
    CHECK(at::equal(file.at("logits").as_tensor(), one_by_one["logits"]));
  }
}

TEST_CASE(
    "predictions have a row for each sample, in the order of the data, however it is batched") {
  constexpr int64_t kSamples = 10;
  LoaderOptions training;
  training.batch_size = 4;
  training.shuffle = true;
  training.drop_last = true;
  for (const char* mode : {"eager", "traced"}) {
    const TempDir dir;
    TrainerOptions options = tiny_options(dir / "run");
    options.backend.mode = mode;
    options.loop.max_steps = 3;
    Trainer trainer(options, quiet_log());
    const DataLoader train = tiny_loader("train", kSamples, training);
    trainer.fit(train);
    const Outputs outputs = trainer.predict(train);
    const Outputs whole = trainer.predict(tiny_loader("val", kSamples, kSamples));
    REQUIRE(outputs["logits"].size(0) == kSamples);
    CHECK(outputs["logits"].allclose(whole["logits"]));
    CHECK(trainer.predict(tiny_loader("few", 3, training))["logits"].size(0) == 3);
    CHECK(train.options().shuffle);  // the loader trains as before
    CHECK(train.size() == 2);
  }
}

TEST_SUITE_END();
