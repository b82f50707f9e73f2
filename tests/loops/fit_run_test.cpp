#include "loops/fit_run.h"

#include <ATen/TensorOperators.h>
#include <doctest/doctest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "callbacks/core/early_exit_callback.h"
#include "core/error.h"
#include "data/dataset.h"
#include "optim/sgd.h"
#include "support/probe_callback.h"
#include "support/recording_callback.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

using Entries = std::vector<MemoryLogger::Entry>;

TrainerOptions logged_options(const TempDir& dir, Entries& entries) {
  TrainerOptions options = tiny_options(dir / "run");
  MemoryLogger::Options memory;
  memory.entries = &entries;
  options.loggers = {use<MemoryLogger>(memory)};
  return options;
}

/// Updates at which `name` was logged.
std::vector<int64_t> updates_of(const Entries& entries, const std::string& name) {
  std::vector<int64_t> updates;
  for (const auto& value : values_of(entries, name)) {
    updates.push_back(value.first);
  }
  return updates;
}

using Updates = std::vector<int64_t>;

/// Fails behind the first batch, and looks at the State's batch while the stage ends.
class FailsBehindBatch final : public Callback {
 public:
  struct Options {
    std::vector<const Batch*>* batches = nullptr;
  };

  explicit FailsBehindBatch(const Options& options) : options_(options) {}

  void on_enter_train(
      Trainer& trainer, Cleanup& cleanup, const DataLoader&, Loop&, int64_t) override {
    cleanup.push([this, &trainer](const std::exception_ptr&) {
      options_.batches->push_back(trainer.state().batch);
    });
  }

  void on_train_batch_end(
      Trainer& trainer, Model&, const Outputs&, const Batch& batch, int64_t) override {
    CHECK(trainer.state().batch == &batch);
    throw UsageError("enough");
  }

 private:
  Options options_;
};

/// Ten samples, drawn from the global generator when it is built.
class Drawn final : public Dataset {
 public:
  struct Options {
    int* times_built = nullptr;
    bool fails = false;
  };

  explicit Drawn(const Options& options) : x_(torch::rand({10, 4})) {
    if (options.times_built != nullptr) {
      ++*options.times_built;
    }
    if (options.fails) {
      throw DataError("planted");
    }
  }

  int64_t size() const override { return x_.size(0); }

  Sample get(int64_t index) const override {
    return {{"x", x_[index]}, {"label", torch::zeros({}, torch::kLong)}};
  }

 private:
  at::Tensor x_;
};

DataLoader drawn_loader(const Drawn::Options& options = {}) {
  return DataLoader("val", use<Drawn>(options));
}

/// What each batch finds at its end: its number, and whether its gradients are still there; and
/// what it defers to every second update.
class LooksAtBatches final : public Callback {
 public:
  struct Options {
    std::vector<int64_t>* indices = nullptr;
    std::vector<bool>* have_gradients = nullptr;
    int64_t* deferred = nullptr;
  };

  explicit LooksAtBatches(const Options& options) : to_(options) {}

  void on_train_batch_end(
      Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t batch_idx) override {
    to_.indices->push_back(batch_idx);
    to_.have_gradients->push_back(!trainer.state().optimizer->grads().empty());
  }

  void on_after_forward(Trainer& trainer, Model&, Outputs& outputs, const Batch&) override {
    const auto count = [to = to_.deferred](const std::vector<at::Tensor>&) { ++*to; };
    trainer.defer({outputs["loss"].detach()}, count, /*every=*/2);
  }

 private:
  Options to_;
};

}  // namespace

TEST_SUITE_BEGIN("loops/fit_run");

TEST_CASE("T93: log_steps 3 over 7 updates logs at 3, 6 and 7; 0 logs only at 7") {
  for (const int64_t log_steps : {3, 0}) {
    const TempDir dir;
    Entries entries;
    TrainerOptions options = logged_options(dir, entries);
    options.loop.max_steps = 7;
    options.logging.log_steps = log_steps;
    Trainer trainer(options, quiet_log());
    trainer.fit(tiny_loader("train"));
    CHECK(updates_of(entries, "loss") == (log_steps == 3 ? Updates{3, 6, 7} : Updates{7}));
  }
}

TEST_CASE("log_steps in other units logs at the update that crosses them") {
  const TempDir dir;
  Entries entries;
  TrainerOptions options = logged_options(dir, entries);
  options.loop.max_steps = 8;
  options.logging.log_steps = 0.25;
  Trainer(options, quiet_log()).fit(tiny_loader("train"));
  CHECK(updates_of(entries, "loss") == Updates{2, 4, 6, 8});
  entries.clear();
  options.model_dir = dir / "epochs";
  options.logging.log_steps = "1ep";
  options.loop.grad_accum_steps = 2;
  Trainer by_epochs(options, quiet_log());
  const int64_t batches = *tiny_loader("train").size();
  by_epochs.fit(tiny_loader("train"));
  Updates expected;
  for (int64_t update = (batches + 1) / 2; update < 8; update += (batches + 1) / 2) {
    expected.push_back(update);
  }
  expected.push_back(8);
  CHECK(updates_of(entries, "loss") == expected);
}

TEST_CASE("log_steps in seconds logs in the update after the one that crosses them") {
  struct Case {
    std::string mode;
    Time log_steps;
    std::optional<Time> max_duration;
    Updates logged;
  };

  // Each update takes 40 seconds.
  for (const Case& one : std::vector<Case>{{"eager", "100sec", {}, {4, 6, 8}},
                                           {"traced", "100sec", {}, {4, 6, 8}},
                                           {"traced", 0.3125, Time("320sec"), {4, 6, 9}}}) {
    INFO(one.mode << ", " << one.log_steps.to_string());
    const TempDir dir;
    Entries entries;
    ProbeCallback::Options clock;
    clock.train_batch_end = [](Trainer& trainer) {
      trainer.state().timestamp.total_seconds += 40.0;
    };
    TrainerOptions options = logged_options(dir, entries);
    options.backend.mode = one.mode;
    options.callbacks.push_back(use<ProbeCallback>(clock));
    options.loop.max_steps = 8;
    if (one.max_duration) {
      options.loop.max_steps.reset();
      options.loop.max_duration = one.max_duration;
    }
    options.logging.log_steps = one.log_steps;
    Trainer(options, quiet_log()).fit(tiny_loader("train"));
    CHECK(updates_of(entries, "loss") == one.logged);
  }
}

TEST_CASE("T66: a run longer than its data begins the next epoch") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.loop.max_steps = 12;
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train"));  // 5 batches a pass
  CHECK(trainer.state().timestamp.epoch == 2);
  CHECK(trainer.state().timestamp.batch_in_epoch == 2);
  CHECK(trainer.state().timestamp.sample == 24);
}

TEST_CASE("T71: a group of 5 batches makes the update of one large batch; its loss is the mean") {
  const auto train = [](int64_t batch_size, int64_t accumulation, Entries& entries) {
    const TempDir dir;
    TrainerOptions options = logged_options(dir, entries);
    options.loop.max_steps = 3;
    options.loop.grad_accum_steps = accumulation;
    Trainer trainer(options, quiet_log());
    trainer.fit(tiny_loader("train", 10, batch_size));
    return bits_of(trainer).at("model").as_dict();
  };
  constexpr double kTolerance = 1e-6;  // float32 sums in another order
  Entries one;
  Entries five;
  const StateDict whole = train(10, 1, one);
  const StateDict grouped = train(2, 5, five);
  for (const StateDict::Item& item : whole.items()) {
    const at::Tensor difference = item.second.as_tensor() - grouped.at(item.first).as_tensor();
    CHECK(difference.abs().max().item<double>() < kTolerance);
  }
  REQUIRE(values_of(five, "loss").size() == 3);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(std::abs(values_of(one, "loss")[i].second - values_of(five, "loss")[i].second) <
          kTolerance);
  }
}

TEST_CASE("batches count on through a fit; a group keeps its gradients up to its update") {
  for (const char* mode : {"eager", "traced"}) {
    CAPTURE(mode);
    const TempDir dir;
    std::vector<int64_t> indices;
    std::vector<bool> have_gradients;
    int64_t deferred = 0;
    TrainerOptions options = tiny_options(dir / "run");
    options.backend.mode = mode;
    options.loop.max_steps = 8;
    options.loop.eval_frequency = 0;
    options.loop.grad_accum_steps = 2;
    options.callbacks = {use<LooksAtBatches>({&indices, &have_gradients, &deferred})};
    Trainer(options, quiet_log()).fit(tiny_loader("train", 8));
    REQUIRE(indices.size() == 16);
    for (size_t i = 0; i < indices.size(); ++i) {
      CAPTURE(i);
      CHECK(indices[i] == static_cast<int64_t>(i));
      CHECK(have_gradients[i] == (i % 2 == 0));
    }
    CHECK(deferred == 8);  // both batches of four updates
  }
}

TEST_CASE("P12: the logged loss is the mean over the batches of its update, not over the data") {
  const auto losses = [](int64_t batch_size, int64_t accumulation) {
    const TempDir dir;
    Entries entries;
    TrainerOptions options = logged_options(dir, entries);
    options.optimizer = use<Sgd>({0.0});
    options.loop.grad_accum_steps = accumulation;
    Trainer trainer(options, quiet_log());
    trainer.fit(tiny_loader("train", 8, batch_size));
    return values_of(entries, "loss");
  };
  const auto single = losses(2, 1);
  const auto pairs = losses(2, 2);
  REQUIRE(single.size() == 4);
  REQUIRE(pairs.size() == 2);
  for (size_t i = 0; i < 2; ++i) {
    CHECK(pairs[i].first == static_cast<int64_t>(i) + 1);
    CHECK(pairs[i].second ==
          doctest::Approx((single[2 * i].second + single[2 * i + 1].second) / 2.0));
  }
}

TEST_CASE("T94: a validation logs every log_steps-th batch and the last") {
  const TempDir dir;
  Entries entries;
  std::vector<int64_t> logged;
  TrainerOptions options = logged_options(dir, entries);
  options.logging.log_steps = 2;
  ProbeCallback::Options probe;
  size_t known = 0;
  int64_t batch = 0;
  probe.validate_batch_start = [&](Trainer&, const Batch&) {
    if (values_of(entries, "val/val_loss").size() > known) {
      logged.push_back(batch);
      ++known;
    }
    ++batch;
  };
  options.callbacks = {use<ProbeCallback>(probe)};
  Trainer trainer(options, quiet_log());
  trainer.validate(tiny_loader("val"));  // 5 batches
  CHECK(logged == std::vector<int64_t>{2, 4});
  CHECK(values_of(entries, "val/val_loss").size() == 3);  // those and the last
}

TEST_CASE("C45: two runs from one seed have the same losses, bit for bit") {
  for (const char* mode : {"eager", "traced"}) {
    const auto losses = [mode] {
      const TempDir dir;
      Entries entries;
      TrainerOptions options = logged_options(dir, entries);
      options.backend.mode = mode;
      options.loop.max_steps = 12;
      LoaderOptions batches;
      batches.batch_size = 2;
      batches.shuffle = true;
      Trainer trainer(options, quiet_log());
      trainer.fit(tiny_loader("train", 10, batches));
      return values_of(entries, "loss");
    };
    const auto first = losses();
    CHECK(first.size() == 12);
    CHECK(first == losses());
  }
}

TEST_CASE("T74: a short last group is averaged by its own size and leaks nothing") {
  const auto trained = [](int64_t batch_size, int64_t group) {
    const TempDir dir;
    Entries entries;
    TrainerOptions options = logged_options(dir, entries);
    options.loop.max_steps = 4;
    options.loop.grad_accum_steps = group;
    Trainer trainer(options, quiet_log());
    trainer.fit(tiny_loader("train", 10, batch_size));
    CHECK(trainer.state().timestamp.epoch == 1);
    return std::tuple(trainer.state().timestamp.batch,
                      bits_of(trainer).at("model/0.weight").as_tensor(),
                      values_of(entries, "loss"));
  };
  const auto [batches, in_groups, losses] = trained(2, 2);  // of 2, 2, 1, then 2 batches
  const auto [large_batches, at_once, large_losses] = trained(4, 1);
  CHECK(batches == 7);
  CHECK(large_batches == 4);
  CHECK(torch::allclose(in_groups, at_once, /*rtol=*/1e-6, /*atol=*/1e-6));
  REQUIRE(losses.size() == 4);
  REQUIRE(large_losses.size() == 4);
  for (size_t i = 0; i < losses.size(); ++i) {
    CHECK(losses[i].second == doctest::Approx(large_losses[i].second));
  }
}

TEST_CASE("T73: a validation loss is not divided by the group") {
  const auto loss = [](int64_t accumulation) {
    const TempDir dir;
    TrainerOptions options = tiny_options(dir / "run");
    options.loop.grad_accum_steps = accumulation;
    Trainer trainer(options, quiet_log());
    return *trainer.validate(tiny_loader("val")).number("val/loss");
  };
  CHECK(loss(1) == loss(4));
}

TEST_CASE("T116: an early exit after the second batch ends the fit in order, without validation") {
  const TempDir dir;
  std::vector<std::string> hooks;
  TrainerOptions options = tiny_options(dir / "run");
  RecordingCallback::Options recording;
  recording.hooks = &hooks;
  options.callbacks = {use<RecordingCallback>(recording)};
  options.loop.max_steps = 9;
  Trainer trainer(options, quiet_log());
  trainer.slot<EarlyExitCallback>().add([&] { return trainer.state().global_step() >= 2; });
  const FitResult result = trainer.fit(tiny_loader("train"), {tiny_loader("val")});
  CHECK(result.steps == 2);
  CHECK(hooks.back() == "on_fit_end");
  CHECK(std::count(hooks.begin(), hooks.end(), "on_train_end") == 1);
  CHECK(std::count(hooks.begin(), hooks.end(), "on_enter_validate") == 0);
  CHECK(trainer.fit(tiny_loader("train")).steps == 9);  // a second run starts clean
}

TEST_CASE("request_stop ends the fit after the current update and says why") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.loop.max_steps = 9;
  options.loop.grad_accum_steps = 2;
  Trainer trainer(options, quiet_log());
  FitRun run(trainer, tiny_loader("train"), {}, {});
  run.advance();  // enters the stage
  run.advance();  // the first batch of a group
  trainer.request_stop("enough");
  while (run.advance()) {
  }
  CHECK(run.result().steps == 1);
  CHECK(run.result().stop_reason == "enough");
  CHECK(trainer.fit(tiny_loader("train")).steps == 9);  // the request is spent
}

TEST_CASE("a run that has reached its total says so and does nothing") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.loop.max_steps = 3;
  Trainer trainer(options, quiet_log());
  CHECK_FALSE(trainer.fit(tiny_loader("train")).was_already_done);
  const FitResult again = trainer.fit(tiny_loader("train"));
  CHECK(again.was_already_done);
  CHECK(again.steps == 3);
  CHECK(again.steps_now == 0);
}

TEST_CASE("validation data that cannot be read ends a fit before its first update") {
  const TempDir dir;
  std::vector<std::string> hooks;
  RecordingCallback::Options recording;
  recording.hooks = &hooks;
  TrainerOptions options = tiny_options(dir / "run");
  options.callbacks = {use<RecordingCallback>(recording)};
  options.loop.max_steps = 4;
  Trainer trainer(options, quiet_log());
  Drawn::Options broken;
  broken.fails = true;
  CHECK_THROWS_AS(trainer.fit(tiny_loader("train"), {tiny_loader("a"), drawn_loader(broken)}),
                  DataError);
  CHECK(trainer.state().global_step() == 0);
  CHECK(std::count(hooks.begin(), hooks.end(), "on_fit_start") == 0);
  CHECK(hooks.back() == "on_fit_exception");
}

TEST_CASE("a fit builds its validation data once, and not at all when it will not validate") {
  const TempDir dir;
  int times = 0;
  Drawn::Options counted;
  counted.times_built = &times;
  TrainerOptions options = tiny_options(dir / "run");
  options.loop.max_steps = 4;
  options.loop.eval_frequency = 2;
  options.checkpoint.save_final_checkpoint = false;  // its validation would be due on a resume
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train"), {drawn_loader(counted)});
  CHECK(times == 1);
  CHECK(trainer.fit(tiny_loader("train"), {drawn_loader(counted)}).was_already_done);
  CHECK(times == 1);
  options.model_dir = dir / "never";
  options.loop.eval_frequency = 0;
  Trainer(options, quiet_log()).fit(tiny_loader("train"), {drawn_loader(counted)});
  CHECK(times == 1);
}

TEST_CASE("what validation data draws when it is built moves no number of the run or of a resume") {
  const TempDir dir;
  Entries entries;
  const auto begin = [&](const char* name) {
    TrainerOptions options = logged_options(dir, entries);
    options.model_dir = dir / name;
    options.loop.max_steps = 4;
    options.loop.eval_frequency = 2;
    options.checkpoint.steps = 3;
    return std::make_unique<Trainer>(options, quiet_log());
  };
  const auto straight = begin("straight");
  straight->fit(tiny_loader("train"), {drawn_loader()});
  const auto losses = values_of(entries, "val/loss");
  REQUIRE(losses.size() == 2);
  const auto other = begin("other");
  other->fit(tiny_loader("train"), {tiny_loader("val")});
  CHECK(first_difference(bits_of(*straight), bits_of(*other)) == "");
  {
    const auto stopped = begin("resumed");
    FitRun run(*stopped, tiny_loader("train"), {drawn_loader()}, {});
    while (stopped->state().global_step() < 3 && run.advance()) {
    }
  }
  entries.clear();
  const auto resumed = begin("resumed");
  resumed->fit(tiny_loader("train"), {drawn_loader()});
  CHECK(first_difference(bits_of(*straight), bits_of(*resumed)) == "");
  CHECK(values_of(entries, "val/loss") == std::vector{losses[1]});
}

TEST_CASE("T120: a loss that is not finite ends the run with its own type") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.optimizer = use<Sgd>({std::numeric_limits<double>::max()});
  options.loop.max_steps = 20;
  Trainer trainer(options, quiet_log());
  CHECK_THROWS_AS(trainer.fit(tiny_loader("train")), NonFiniteLossError);
}

TEST_CASE("T31: a fit without optimizer fails in on_fit_start") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.optimizer = {};
  Trainer trainer(options, quiet_log());
  try {
    trainer.fit(tiny_loader("train"));
    FAIL("nothing was thrown");
  } catch (const HookError& error) {
    CHECK(std::string(error.what()).find("on_fit_start") != std::string::npos);
    const std::exception_ptr cause = root_cause(std::current_exception());
    CHECK_THROWS_AS(std::rethrow_exception(cause), UsageError);
    CHECK(describe(cause).find("TrainerOptions::optimizer") != std::string::npos);
  }
  CHECK(trainer.state().timestamp.batch == 0);
}

TEST_CASE("T39: loggers are flushed on leaving fit, train and validate, also after a failure") {
  const TempDir dir;
  Entries entries;
  int flushes = 0;
  TrainerOptions options = tiny_options(dir / "run");
  MemoryLogger::Options memory;
  memory.entries = &entries;
  memory.flushes = &flushes;
  options.loggers = {use<MemoryLogger>(memory)};
  std::vector<std::string> hooks;
  RecordingCallback::Options throwing;
  throwing.hooks = &hooks;
  throwing.throws_in = "on_train_batch_end";
  options.callbacks = {use<RecordingCallback>(throwing)};
  Trainer trainer(options, quiet_log());
  CHECK_THROWS(trainer.fit(tiny_loader("train")));
  CHECK(flushes == 2);
  trainer.validate(tiny_loader("val"));
  CHECK(flushes == 3);
}

TEST_CASE("the State has a batch only while there is one, also when a hook fails behind it") {
  const TempDir dir;
  std::vector<const Batch*> batches;
  TrainerOptions options = tiny_options(dir / "run");
  options.callbacks = {use<FailsBehindBatch>({&batches})};
  Trainer trainer(options, quiet_log());
  CHECK_THROWS(trainer.fit(tiny_loader()));
  REQUIRE(batches.size() == 1);
  CHECK(batches[0] == nullptr);
}

TEST_CASE("two Trainers in one process do not touch each other's numbers") {
  const auto alone = [] {
    const TempDir dir;
    TrainerOptions options = tiny_options(dir / "run");
    options.loop.max_steps = 4;
    Trainer trainer(options, quiet_log());
    trainer.fit(tiny_loader("train"));
    return bits_of(trainer);
  };
  const StateDict expected = alone();
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "a");
  options.loop.max_steps = 4;
  TrainerOptions other = tiny_options(dir / "b");
  other.seed = 99;
  Trainer first(options, quiet_log());
  Trainer second(other, quiet_log());
  FitRun one(first, tiny_loader("train"), {}, {});
  FitRun two(second, tiny_loader("train"), {}, {});
  while (one.advance()) {
    two.advance();
  }
  CHECK(first_difference(bits_of(first), expected).empty());
}

TEST_SUITE_END();
