#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "core/error.h"
#include "optim/schedulers.h"
#include "optim/sgd.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

TEST_SUITE_BEGIN("loops/explained_nan");

using namespace rondo;
using namespace rondo::test;

namespace {

// What a run that goes bad says.
std::string message_of(TrainerOptions options) {
  options.backend.mode = "traced";
  options.backend.on_nan = "explain";
  if (!options.loop.max_steps) {
    options.loop.max_steps = 20;
  }
  Trainer trainer(options, quiet_log());
  try {
    trainer.fit(tiny_loader("train"), {tiny_loader("val", 4)});
  } catch (const NonFiniteLossError& error) {
    return error.what();
  }
  return "";
}

// A run whose learning rate explodes in update 7.
TrainerOptions exploding_options(const std::filesystem::path& model_dir) {
  TrainerOptions options = tiny_options(model_dir);
  StepLR::Options schedule;
  schedule.initial_learning_rate = 0.01;
  schedule.step_size = 6;
  schedule.gamma = 1e60;
  options.schedulers = {use<StepLR>(schedule)};
  return options;
}

bool tells(const std::string& text, const std::string& fact) {
  return text.find(fact) != std::string::npos;
}

}  // namespace

TEST_CASE("an overflow in the optimizer is named, with the parameter that it spoiled") {
  for (const int64_t accumulation : {1, 3}) {
    const TempDir dir;
    TrainerOptions options = tiny_options(dir / "run");
    options.optimizer = use<Sgd>({1e39});
    options.loop.grad_accum_steps = accumulation;
    const std::string text = message_of(options);
    CHECK_MESSAGE(tells(text, "first bad operator: rondo::sgd_"), text);
    CHECK_MESSAGE(tells(text, "update"), text);
    CHECK_MESSAGE(tells(text, "weight"), text);
    // The state is looked at when it is time for the next copy, which may be before the next loss.
    const bool says_what =
        tells(text, "the loss of update") || tells(text, "\"model.0.weight\" of the state");
    CHECK_MESSAGE(says_what, text);
  }
}

TEST_CASE("schedules are replayed as they were") {
  const TempDir dir;
  const std::string text = message_of(exploding_options(dir / "run"));
  CHECK_MESSAGE(tells(text, "first bad operator: rondo::sgd_"), text);
}

TEST_CASE("the operator is named wherever validations lie, also right after the bad update") {
  for (const int64_t frequency : {0, 1, 5, 6, 7, 8}) {
    CAPTURE(frequency);
    const TempDir dir;
    TrainerOptions options = exploding_options(dir / "run");
    options.loop.eval_frequency = frequency;
    const std::string text = message_of(options);
    CHECK_MESSAGE(tells(text, "first bad operator: rondo::sgd_"), text);
    CHECK_MESSAGE(tells(text, "update"), text);
  }
}

TEST_CASE("a run that its last update spoils is no success") {
  for (const int64_t frequency : {0, 7}) {
    CAPTURE(frequency);
    const TempDir dir;
    TrainerOptions options = exploding_options(dir / "run");
    options.loop.eval_frequency = frequency;
    options.loop.max_steps = 6;
    CHECK(message_of(options).empty());
    options.loop.max_steps = 7;
    options.checkpoint.autoload_last_checkpoint = false;
    const std::string text = message_of(options);
    CHECK_MESSAGE(tells(text, "first bad operator: rondo::sgd_"), text);
    CHECK_MESSAGE(tells(text, "in the last step"), text);
  }
}

TEST_CASE("a spoiled state is not saved") {
  const TempDir dir;
  TrainerOptions options = exploding_options(dir / "run");
  options.checkpoint.steps = 1;
  const std::string text = message_of(options);
  CHECK_MESSAGE(tells(text, "first bad operator: rondo::sgd_"), text);
  CHECK(std::filesystem::exists(dir / "run/checkpoint_6.pt"));
  CHECK_FALSE(std::filesystem::exists(dir / "run/checkpoint_7.pt"));
}

TEST_SUITE_END();
