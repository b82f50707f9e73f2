#include <doctest/doctest.h>
#include <torch/nn/module.h>
#include <torch/types.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "callbacks/core/grad_accum_callback.h"
#include "checkpoint/checkpoint_file.h"
#include "core/error.h"
#include "loops/message_of_setup.h"
#include "models/builtin/mlp.h"
#include "optim/adam.h"
#include "support/contains.h"
#include "support/scarce_memory.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// The parts of a step in which a test has memory run out.
enum class Part { Forward, Backward, BeforeUpdate, AfterUpdate };

/// Allocates in each step, and once, in a batch of the run, fails. It allocates in a host call, so
/// that replays do it too. It also draws random numbers, and counts batches.
class RunsOut final : public Callback {
 public:
  struct Options {
    ScarceMemory* memory = nullptr;
    Part part = Part::Forward;
    int64_t update = 0;          ///< of the run
    int64_t piece = 0;           ///< of the update
    int64_t* batches = nullptr;  ///< that were trained, as its state counts
    bool is_always = false;      ///< and not only the first time
  };

  explicit RunsOut(const Options& options) : options_(options) {}

  void on_train_batch_start(Trainer& trainer, Model&, const Batch&, int64_t) override {
    const Timestamp& now = trainer.state().timestamp;
    piece_ = trainer.state().position.is_first ? 0 : piece_ + 1;
    is_due_ = (options_.is_always || !has_failed_) && now.update == options_.update &&
              piece_ == options_.piece;
  }

  void on_train_batch_end(Trainer&, Model&, const Outputs&, const Batch&, int64_t) override {
    ++batches_;
    if (options_.batches != nullptr) {
      *options_.batches = batches_;
    }
  }

  void on_before_forward(Trainer&, Model&, const Batch&, Batch& input) override {
    input.set("x", input["x"] + torch::rand_like(input["x"]));
  }

  void on_after_forward(Trainer& trainer, Model&, Outputs&, const Batch&) override {
    allocate(trainer, Part::Forward);
  }

  void on_after_backward(Trainer& trainer, Model&, Outputs&) override {
    allocate(trainer, Part::Backward);
  }

  void on_before_optimizer_step(Trainer& trainer, Model&, Optimizer&) override {
    allocate(trainer, Part::BeforeUpdate);
  }

  void on_after_optimizer_step(Trainer& trainer, Model&, Optimizer&) override {
    allocate(trainer, Part::AfterUpdate);
  }

  StateDict save_state() const override { return {{"batches", batches_}}; }

  void load_state(const StateDict& state) override { batches_ = state.at("batches").as_int(); }

 private:
  void allocate(Trainer& trainer, Part part) {
    if (part != options_.part) {
      return;
    }
    trainer.host_call("allocate", {}, [this](const std::vector<at::Tensor>&) {
      if (!is_due_) {
        return;
      }
      has_failed_ = true;
      options_.memory->end_at(0);
      try {
        torch::empty({1});
      } catch (...) {
        options_.memory->give_back();
        throw;
      }
    });
  }

  Options options_;
  bool has_failed_ = false;
  bool is_due_ = false;
  int64_t piece_ = 0;
  int64_t batches_ = 0;
};

TrainerOptions auto_options(const std::filesystem::path& model_dir, const char* mode) {
  TrainerOptions options = tiny_options(model_dir);
  options.backend.mode = mode;
  options.optimizer = use<Adam>({1e-2});
  options.loop.eval_frequency = 0;
  options.loop.device_train_microbatch_size = kAutoMicroBatch;
  return options;
}

/// 20 samples in batches of 8, 8 and 4.
DataLoader eights() {
  return tiny_loader("train", 20, 8);
}

StateDict trained(TrainerOptions options, int64_t updates, const RunsOut::Options& when) {
  options.callbacks = {use<RunsOut>(when)};
  options.loop.max_steps = updates;
  Trainer trainer(options, quiet_log());
  trainer.fit(eights());
  return bits_of(trainer);
}

/// The same without "auto": whole batches until an update, and pieces of 4 from there on.
StateDict cut_by_hand(const std::filesystem::path& model_dir, int64_t from, int64_t updates) {
  TrainerOptions options = auto_options(model_dir, "eager");
  RunsOut::Options never;
  never.update = -1;
  options.loop.device_train_microbatch_size = 8;
  if (from > 0) {
    trained(options, from, never);
  }
  options.loop.device_train_microbatch_size = 4;
  return trained(options, updates, never);
}

}  // namespace

TEST_SUITE_BEGIN("loops/auto_micro_batch");

TEST_CASE(
    "C41: an update in which memory runs out is trained again in halves, without losing or "
    "repeating a sample") {
  const TempDir dir;
  ScarceMemory memory;
  constexpr int64_t kUpdates = 8;
  int run = 0;
  for (const int64_t update : {0, 1, 4}) {
    const StateDict wanted =
        cut_by_hand(dir.path() / ("by_hand_" + std::to_string(update)), update, kUpdates);
    for (const Part part : {Part::Forward, Part::Backward, Part::BeforeUpdate, Part::AfterUpdate}) {
      for (const char* mode : {"eager", "traced"}) {
        CAPTURE(update);
        CAPTURE(static_cast<int>(part));
        CAPTURE(mode);
        const TrainerOptions options =
            auto_options(dir.path() / ("auto_" + std::to_string(run++)), mode);
        int64_t batches = 0;
        const StateDict found = trained(options, kUpdates, {&memory, part, update, 0, &batches});
        CHECK(first_difference(wanted, found) == "");
        // Each third update has 4 samples, the others have two pieces from there on.
        CHECK(batches == kUpdates + 6 - (update - update / 3));
      }
    }
  }
}

TEST_CASE("memory that runs out in a later piece of an update undoes the whole update") {
  const TempDir dir;
  ScarceMemory memory;
  RunsOut::Options never;
  never.update = -1;
  TrainerOptions by_hand = auto_options(dir / "by_hand", "eager");
  by_hand.loop.device_train_microbatch_size = 4;
  trained(by_hand, 3, never);
  by_hand.loop.device_train_microbatch_size = 2;
  const StateDict wanted = trained(by_hand, 7, never);
  for (const char* mode : {"eager", "traced"}) {
    for (const Part part : {Part::Forward, Part::Backward, Part::AfterUpdate}) {
      CAPTURE(mode);
      CAPTURE(static_cast<int>(part));
      const auto path = dir.path() / (std::string(mode) + std::to_string(static_cast<int>(part)));
      TrainerOptions options = auto_options(path, mode);
      trained(options, 1, {&memory, Part::Forward, 0, 0});  // halves to 4, which is saved
      const StateDict found = trained(options, 7, {&memory, part, 3, 1});
      CHECK(first_difference(wanted, found) == "");
    }
  }
}

TEST_CASE("the size that was found is saved, and a resumed run equals an uninterrupted one") {
  const TempDir dir;
  ScarceMemory memory;
  const RunsOut::Options when{&memory, Part::Backward, 1, 0};
  RunsOut::Options never;
  never.update = -1;
  for (const char* mode : {"eager", "traced"}) {
    CAPTURE(mode);
    const std::string name = mode;
    const StateDict whole = trained(auto_options(dir.path() / (name + "_whole"), mode), 9, when);
    const TrainerOptions options = auto_options(dir.path() / (name + "_resumed"), mode);
    trained(options, 4, when);
    const StateDict file = read_checkpoint(options.model_dir / "checkpoint_4.pt");
    CHECK(file.at("callbacks/grad_accum/micro_batch").as_int() == 4);
    CHECK(first_difference(whole, trained(options, 9, never)) == "");
  }
}

TEST_CASE("a step whose tensors do not fit is halved until they do") {
  Mlp::Options wide;
  wide.sizes = {4, 4096, 3};
  wide.input = "x";
  const TempDir dir;
  const auto after = [&](const std::string& name, const char* mode, int64_t size) {
    TrainerOptions options = auto_options(dir.path() / name, mode);
    options.model = use<Mlp>(wide);
    options.backend.on_refusal = "eager";  // a plan may not fit where its step does
    options.loop.device_train_microbatch_size = size;
    options.loop.max_steps = 4;
    Trainer trainer(options, quiet_log());
    trainer.fit(tiny_loader("train", 64, 32));
    CHECK(trainer.slot<GradAccumCallback>().groups().micro_batch == 16);
    return bits_of(trainer);
  };
  const StateDict wanted = after("by_hand", "eager", 16);
  ScarceMemory memory;
  memory.end_at(size_t{32} * 4096 * 4);  // no hidden layer of 32 samples
  CHECK(first_difference(wanted, after("eager", "eager", kAutoMicroBatch)) == "");
  CHECK(first_difference(wanted, after("traced", "traced", kAutoMicroBatch)) == "");
}

TEST_CASE("C42: also on a CPU memory that does not hold one sample ends the run, which says so") {
  const TempDir dir;
  ScarceMemory memory;
  std::string text;
  try {
    trained(auto_options(dir / "run", "eager"),
            4,
            {&memory, Part::Backward, 1, 0, nullptr, /*is_always=*/true});
  } catch (const std::exception&) {
    text = describe(std::current_exception());
  }
  CHECK(contains(text, "micro-batches of one sample"));
  CHECK(contains(text, "can't allocate memory"));
}

TEST_CASE("without \"auto\" memory that runs out ends the run") {
  const TempDir dir;
  ScarceMemory memory;
  TrainerOptions options = auto_options(dir / "run", "eager");
  options.loop.device_train_microbatch_size = 4;
  CHECK_THROWS_AS(trained(options, 4, {&memory, Part::Backward, 1, 0}), std::exception);
}

TEST_CASE("loop.memory_limit needs \"auto\"") {
  const TempDir dir;
  TrainerOptions options = auto_options(dir / "run", "eager");
  options.loop.memory_limit = int64_t{1} << 30;
  options.loop.device_train_microbatch_size = 4;
  CHECK(contains(message_of_setup(options), "loop.device_train_microbatch_size = \"auto\""));
}

TEST_SUITE_END();
