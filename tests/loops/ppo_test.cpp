#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "../../examples/ppo/ppo.h"
#include "core/error.h"
#include "support/contains.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"

using namespace rondo;
using namespace rondo::test;

namespace {

struct PpoCase {
  std::string mode = "eager";
  int64_t accumulation = 1;
  int64_t micro_batch = 0;
};

TrainerOptions ppo_options(const std::filesystem::path& model_dir, const PpoCase& c) {
  TrainerOptions options = tiny_options(model_dir);
  options.backend.mode = c.mode;
  options.backend.on_refusal = "error";
  options.model = use<ActorCritic>({3, 1, 16});
  options.optimizer = use<Adam>({3e-3});
  options.step = use<PpoStep>();
  options.callbacks = {use<Player>()};
  options.precision.max_gradient_norm = 0.5;
  options.loop.eval_frequency = 0;
  options.loop.grad_accum_steps = c.accumulation;
  if (c.micro_batch > 0) {
    options.loop.device_train_microbatch_size = c.micro_batch;
  }
  return options;
}

DataLoader episodes(const Episodes::Options& options, int64_t batch_size) {
  LoaderOptions batches;
  batches.batch_size = batch_size;
  return DataLoader("train", use<Episodes>(options), batches);
}

/// 60 samples in a pass, in batches of 16.
DataLoader few_episodes() {
  Episodes::Options options;
  options.environments = 3;
  options.steps = 10;
  options.repeats = 2;
  return episodes(options, 16);
}

StateDict bits_of_agent(const std::filesystem::path& model_dir, const PpoCase& c, int64_t updates) {
  TrainerOptions options = ppo_options(model_dir, c);
  options.loop.max_steps = updates;
  Trainer trainer(options, quiet_log());
  trainer.fit(few_episodes());
  CHECK(trainer.state().global_step() == updates);
  return bits_of(trainer);
}

}  // namespace

TEST_SUITE_BEGIN("loops/ppo");

TEST_CASE("PPO: traced equals eager and resumed equals unstopped, bit for bit") {
  int run = 0;
  const TempDir dir;
  for (const PpoCase& c : {PpoCase{"", 1, 0}, PpoCase{"", 2, 0}, PpoCase{"", 1, 5}}) {
    CAPTURE(c.accumulation);
    CAPTURE(c.micro_batch);
    const auto after = [&](const std::string& name, const char* mode, int64_t updates) {
      return bits_of_agent(dir.path() / (name + std::to_string(run)),
                           {mode, c.accumulation, c.micro_batch},
                           updates);
    };
    const StateDict eager = after("eager", "eager", 11);
    CHECK(first_difference(eager, after("traced", "traced", 11)) == "");
    after("resumed", "traced", 5);  // in the middle of a pass
    CHECK(first_difference(eager, after("resumed", "traced", 11)) == "");
    ++run;
  }
}

TEST_CASE("PPO swings the pendulum up") {
  const TempDir dir;
  std::vector<MemoryLogger::Entry> entries;
  MemoryLogger::Options memory;
  memory.entries = &entries;
  TrainerOptions options = ppo_options(dir / "run", {"traced"});
  options.model = use<ActorCritic>({3, 1, 32});
  options.loggers = {use<MemoryLogger>(memory)};
  options.logging.log_steps = int64_t{80};
  options.loop.num_epochs = 12;
  Episodes::Options data;
  data.environments = 16;
  data.repeats = 8;
  Trainer(options, quiet_log()).fit(episodes(data, 320));
  const auto returns = values_of(entries, "data/return");
  REQUIRE(returns.size() == 12);
  for (const auto& [update, value] : returns) {
    MESSAGE(update << ": " << value);
  }
  CHECK(returns.front().second < -900);
  CHECK(returns.back().second > -600);
}

TEST_CASE("PPO: without a player its data says what is missing") {
  const TempDir dir;
  TrainerOptions options = ppo_options(dir / "run", {});
  options.callbacks.clear();
  options.loop.max_steps = 1;
  std::string text;
  try {
    Trainer(options, quiet_log()).fit(few_episodes());
  } catch (const std::exception&) {
    text = describe(std::current_exception());
  }
  CHECK(contains(text, "Player"));
}

TEST_SUITE_END();
