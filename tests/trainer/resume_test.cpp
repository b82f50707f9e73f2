#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_file.h"
#include "core/random.h"
#include "loops/fit_run.h"
#include "models/builtin/mlp.h"
#include "optim/schedulers.h"
#include "sparsity/algorithms.h"
#include "support/campaign.h"
#include "support/every_optimizer.h"
#include "support/probe_callback.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// One run drawn at random: everything that could be forgotten in a checkpoint.
struct Drawn {
  TrainerOptions options;
  LoaderOptions batches;
  int64_t samples = 0;
  int64_t total = 0;
  int64_t interrupted_at = 0;
  std::string resumed_mode;      // of the backend; what may change without a trace
  int64_t resumed_prefetch = 0;  // likewise
  std::string text;
};

Drawn draw(uint64_t seed) {
  KeyedRandom random(seed);
  const auto flip = [&] { return random.below(2) == 1; };
  Drawn drawn;
  Mlp::Options model;
  model.sizes = {4, 6, 3};
  model.input = "x";
  model.dropout = flip() ? 0.3 : 0.0;
  drawn.options = tiny_options("");
  drawn.options.model = use<Mlp>(model);
  static const std::vector<RegisteredOptimizer> optimizers = every_optimizer();
  const RegisteredOptimizer& optimizer = optimizers[random.below(optimizers.size())];
  drawn.options.optimizer = optimizer.factory;
  drawn.total = 4 + static_cast<int64_t>(random.below(12));
  drawn.interrupted_at =
      1 + static_cast<int64_t>(random.below(static_cast<uint64_t>(drawn.total - 1)));
  if (flip()) {
    CosineDecayLR::Options cosine;
    cosine.initial_learning_rate = 0.1;
    cosine.end_learning_rate = 0.01;
    cosine.total_iters = flip() ? Time(drawn.total) : Time("25sp");
    drawn.options.schedulers = {use<CosineDecayLR>(cosine)};
  }
  if (flip()) {
    drawn.options.precision.max_gradient_norm = 0.1;
  }
  if (flip()) {
    drawn.options.sparsity.sparsity = 0.5;
    drawn.options.sparsity.algorithm = flip() ? use<RigL>() : use<StaticSparsity>();
    drawn.options.sparsity.update = {2, 0, drawn.total};
  }
  drawn.options.backend.mode = flip() ? "traced" : "eager";
  drawn.options.loop.grad_accum_steps = 1 + static_cast<int64_t>(random.below(3));
  drawn.options.loop.eval_frequency = static_cast<int64_t>(1 + random.below(5));
  drawn.options.loop.max_steps = drawn.total;
  drawn.batches.shuffle = flip();
  drawn.batches.batch_size = 1 + static_cast<int64_t>(random.below(4));
  drawn.batches.prefetch = static_cast<int64_t>(random.below(3));
  drawn.samples = 5 + static_cast<int64_t>(random.below(12));
  drawn.resumed_mode = flip() ? "traced" : "eager";
  drawn.resumed_prefetch = static_cast<int64_t>(random.below(3));
  drawn.text = optimizer.name + " " + optimizer.keys + ", " + drawn.options.backend.mode +
               " then " + drawn.resumed_mode + ", accumulation " +
               std::to_string(drawn.options.loop.grad_accum_steps) + ", " +
               std::to_string(drawn.total) + " updates, interrupted at " +
               std::to_string(drawn.interrupted_at);
  return drawn;
}

/// What a fit left, and how many updates it made itself.
struct Trained {
  StateDict bits;
  int64_t updates = 0;
};

/// Runs to `until` in `model_dir`, going on from what is there.
Trained run_to(const Drawn& drawn, const std::filesystem::path& model_dir, int64_t until) {
  TrainerOptions options = drawn.options;
  options.model_dir = model_dir;
  options.checkpoint.steps = drawn.interrupted_at;
  Trainer trainer(options, quiet_log());
  const DataLoader train = tiny_loader("train", drawn.samples, drawn.batches);
  Trained trained;
  if (until == drawn.total) {
    trained.updates = trainer.fit(train, {tiny_loader("val", 6)}).steps_now;
  } else {
    FitRun run(trainer, train, {tiny_loader("val", 6)}, {});
    while (trainer.state().global_step() < until && run.advance()) {
    }
  }
  trained.bits = bits_of(trainer);
  return trained;
}

/// Writes down every hook of a load.
class LoadSpy final : public Callback {
 public:
  struct Options {
    std::vector<std::string>* loads = nullptr;
  };

  explicit LoadSpy(const Options& options) : options_(options) {}

  void on_before_load_checkpoint(Trainer&, const std::filesystem::path* path) override {
    note("before " + (path == nullptr ? "null" : path->filename().string()));
  }

  void preprocess_checkpoint(Trainer&, StateDict&) override { note("preprocess"); }

  void check_checkpoint(Trainer&, const StateDict&) override { note("check"); }

  void on_load_checkpoint(Trainer&, const StateDict&) override { note("load"); }

 private:
  void note(const std::string& load) { options_.loads->push_back(load); }

  Options options_;
};

}  // namespace

TEST_SUITE_BEGIN("trainer/resume");

TEST_CASE(
    "C59: a run that is interrupted anywhere and resumed equals the uninterrupted one, bit for "
    "bit") {
  for (int64_t seed = 0; seed < 12 * campaign_scale(); ++seed) {
    const Drawn drawn = draw(static_cast<uint64_t>(seed));
    CAPTURE(seed);
    CAPTURE(drawn.text);
    const TempDir dir;
    const Trained straight = run_to(drawn, dir / "straight", drawn.total);
    run_to(drawn, dir / "resumed", drawn.interrupted_at);
    Drawn rest = drawn;
    rest.options.backend.mode = drawn.resumed_mode;
    rest.batches.prefetch = drawn.resumed_prefetch;
    const Trained resumed = run_to(rest, dir / "resumed", drawn.total);
    CHECK(resumed.updates == drawn.total - drawn.interrupted_at);
    CHECK(first_difference(straight.bits, resumed.bits) == "");
  }
}

TEST_CASE(
    "a run resumed with another batch size goes on with the next sample; another order is told") {
  const TempDir dir;
  std::vector<double> seen;
  ProbeCallback::Options probe;
  probe.train_batch_start = [&](Trainer&, const Batch& batch) {
    for (int64_t row = 0; row < batch.size(); ++row) {
      seen.push_back(batch["x"][row][0].item<double>());
    }
  };
  std::vector<std::string> warnings;
  const auto train = [&](int64_t updates, int64_t batch_size, uint64_t shuffle_seed) {
    seen.clear();
    warnings.clear();
    TrainerOptions options = tiny_options(dir / "run");
    options.loop.max_steps = updates;
    options.checkpoint.steps = updates;
    options.callbacks = {use<ProbeCallback>(probe)};
    LoaderOptions batches;
    batches.batch_size = batch_size;
    batches.shuffle = true;
    batches.shuffle_seed = shuffle_seed;
    Trainer trainer(options, quiet_log(&warnings));
    trainer.fit(tiny_loader("train", 12, batches));
    return seen;
  };
  const auto tells_of_order = [&] {
    return std::any_of(warnings.begin(), warnings.end(), [](const std::string& warning) {
      return warning.find("seed 5") != std::string::npos &&
             warning.find("seed 6") != std::string::npos;
    });
  };
  std::vector<double> epoch = train(2, 3, 5);
  for (const double sample : train(3, 6, 5)) {
    epoch.push_back(sample);
  }
  CHECK_FALSE(tells_of_order());
  CHECK(epoch.size() == 12);
  CHECK(std::set<double>(epoch.begin(), epoch.end()).size() == 12);
  train(4, 3, 5);
  train(5, 3, 6);
  CHECK(tells_of_order());
}

TEST_CASE("a run resumed with a data set of another size is told so, and goes on") {
  const TempDir dir;
  std::vector<std::string> warnings;
  const auto train = [&](int64_t updates, int64_t samples) {
    warnings.clear();
    TrainerOptions options = tiny_options(dir / "run");
    options.loop.max_steps = updates;
    options.checkpoint.steps = updates;
    Trainer trainer(options, quiet_log(&warnings));
    return trainer.fit(tiny_loader("train", samples)).steps_now;
  };
  const auto tells_of_size = [&] {
    return std::any_of(warnings.begin(), warnings.end(), [](const std::string& warning) {
      return warning.find("12 samples") != std::string::npos &&
             warning.find("now it has 16") != std::string::npos;
    });
  };
  train(2, 12);
  CHECK(train(3, 12) == 1);
  CHECK_FALSE(tells_of_size());
  CHECK(train(5, 16) == 2);
  CHECK(tells_of_size());
}

TEST_CASE("a run that is made longer is told when its rate jumps, with both rates") {
  // What a run of 10 updates is told that then gets 20.
  const auto told_of_jump = [](const Time& total_iters) {
    const TempDir dir;
    std::vector<std::string> jumps;
    for (const int64_t updates : {10, 10, 20}) {
      CHECK(jumps.empty());
      TrainerOptions options = tiny_options(dir / "run");
      options.loop.max_steps = updates;
      options.checkpoint.steps = 5;
      CosineDecayLR::Options cosine;
      cosine.initial_learning_rate = 0.25;
      cosine.total_iters = total_iters;
      options.schedulers = {use<CosineDecayLR>(cosine)};
      std::vector<std::string> warnings;
      Trainer(options, quiet_log(&warnings)).fit(tiny_loader("train"));
      std::copy_if(
          warnings.begin(), warnings.end(), std::back_inserter(jumps), [](const std::string& line) {
            return line.find("jumps") != std::string::npos;
          });
    }
    return jumps;
  };
  const std::vector<std::string> jumps = told_of_jump(1.0);
  REQUIRE(jumps.size() == 1);
  for (const char* fact : {"lr", "from 0 to 0.125", "update 10", "20ba"}) {
    CHECK(jumps[0].find(fact) != std::string::npos);
  }
  CHECK(told_of_jump(10).empty());
}

TEST_CASE(
    "T99: checkpoints of every 10 updates with validations every 7 are at 10, 20 and the last") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.loop.max_steps = 25;
  options.loop.eval_frequency = 7;
  options.checkpoint.steps = 10;
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train"), {tiny_loader("val")});
  for (const int64_t step : {10, 20, 25}) {
    CHECK(std::filesystem::exists(dir.path() / ("run/checkpoint_" + std::to_string(step) + ".pt")));
  }
  CHECK(trainer.validate_all_indexed({tiny_loader("val")}).rows.size() == 3);
}

TEST_CASE("T100: a cadence longer than the run saves once, at its end, and so does 0") {
  for (const int64_t steps : {100, 0}) {
    const TempDir dir;
    TrainerOptions options = tiny_options(dir / "run");
    options.loop.max_steps = 5;
    options.checkpoint.steps = steps;
    Trainer trainer(options, quiet_log());
    trainer.fit(tiny_loader("train"));
    CHECK(std::filesystem::exists(dir.path() / "run/checkpoint_5.pt"));
    CHECK(trainer.state().saves.written == 1);
  }
}

TEST_CASE("T102: a checkpoint holds the keys of what the run has, and no others") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.loop.max_steps = 2;
  options.checkpoint.steps = 2;
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train"));
  std::vector<std::string> names = read_checkpoint(dir.path() / "run/checkpoint_2.pt").names();
  std::sort(names.begin(), names.end());
  CHECK(names == std::vector<std::string>{"__metadata__",
                                          "dataloader",
                                          "global_step",
                                          "metrics",
                                          "model",
                                          "optimizer",
                                          "rng",
                                          "timestamp"});
}

TEST_CASE("T102: a checkpoint has schedulers and masks when the run has them") {
  const auto has = [](const std::function<void(TrainerOptions&)>& change, const char* section) {
    const TempDir dir;
    TrainerOptions options = tiny_options(dir / "run");
    options.loop.max_steps = 2;
    options.checkpoint.steps = 2;
    change(options);
    Trainer trainer(options, quiet_log());
    trainer.fit(tiny_loader("train"));
    const StateDict saved = read_checkpoint(dir.path() / "run/checkpoint_2.pt");
    return saved.find(section) != nullptr;
  };
  const auto nothing = [](TrainerOptions&) {};
  CHECK_FALSE(has(nothing, "schedulers"));
  CHECK(has([](TrainerOptions& o) { o.schedulers = {use<ConstantLR>({0.1})}; }, "schedulers"));
  CHECK_FALSE(has(nothing, "sparsity"));
  CHECK(has([](TrainerOptions& o) { o.sparsity.sparsity = 0.5; }, "sparsity"));
  CHECK_FALSE(has(nothing, "callbacks"));
}

TEST_CASE(
    "T108: loading nothing, by request or with autoload off, fires on_before_load_checkpoint with "
    "null only, and starts afresh") {
  for (const bool is_request : {true, false}) {
    const TempDir dir;
    TrainerOptions options = tiny_options(dir / "run");
    options.loop.max_steps = 2;
    options.loop.eval_frequency = 0;  // a validation tells that it loads nothing as well
    options.checkpoint.steps = 2;
    Trainer(options, quiet_log()).fit(tiny_loader("train"));
    std::vector<std::string> loads;
    options.callbacks = {use<LoadSpy>({&loads})};
    options.checkpoint.autoload_last_checkpoint = is_request;
    Trainer again(options, quiet_log());
    const LoadFrom from = is_request ? LoadFrom::nothing() : LoadFrom{};
    CHECK(again.fit(tiny_loader("train"), {}, from).steps_now == 2);
    CHECK(loads == std::vector<std::string>{"before null"});

    loads.clear();
    options.checkpoint.autoload_last_checkpoint = true;
    Trainer resumed(options, quiet_log());
    CHECK(resumed.fit(tiny_loader("train")).was_already_done);
    REQUIRE(loads.size() == 4);
    CHECK(loads.front().find("before checkpoint_2") == 0);
  }
}

TEST_CASE("T110: a model with other parameters is refused, and left as it was") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.loop.max_steps = 2;
  options.checkpoint.steps = 2;
  {
    Trainer trainer(options, quiet_log());
    trainer.fit(tiny_loader("train"));
  }
  Mlp::Options model;
  model.sizes = {4, 3};
  model.input = "x";
  options.model = use<Mlp>(model);
  Trainer other(options, quiet_log());
  const StateDict before = bits_of(other);
  CHECK_THROWS_AS(other.load_checkpoint({}), Error);
  CHECK(
      first_difference(before.at("model").as_dict(), bits_of(other).at("model").as_dict()).empty());
}

TEST_CASE("T112: save_initial_checkpoint writes one file before the first batch of a fit") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.loop.max_steps = 4;
  options.loop.eval_frequency = 2;  // two stages of training
  options.checkpoint.save_initial_checkpoint = true;
  options.checkpoint.steps = 4;
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train"), {tiny_loader("val")});
  CHECK(std::filesystem::exists(dir / "run/checkpoint_0.pt"));
  const auto files = [&] {
    const std::filesystem::directory_iterator entries(dir / "run");
    return std::count_if(begin(entries), end(entries), [](const auto& entry) {
      return entry.is_regular_file() && entry.path().extension() == ".pt";
    });
  };
  CHECK(files() == 2);  // that one and the one at the end

  trainer.validate_all({tiny_loader("val")}, {(dir / "run/checkpoint_*.pt").string()});
  CHECK(files() == 2);  // a validation of several files saves nothing
}

TEST_SUITE_END();
