#include <doctest/doctest.h>

#include <limits>
#include <string>

#include "core/error.h"
#include "optim/lr_schedulers.h"
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
  options.loop.max_steps = 20;
  Trainer trainer(options, quiet_log());
  try {
    trainer.fit(tiny_loader("train"));
  } catch (const NonFiniteLossError& error) {
    return error.what();
  }
  return "";
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
    CHECK_MESSAGE(tells(text, "the loss of update"), text);
  }
}

TEST_CASE("schedules are replayed as they were") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  StepLR::Options schedule;
  schedule.initial_learning_rate = 0.01;
  schedule.step_size = 6;
  schedule.gamma = 1e60;
  options.schedulers = {use<StepLR>(schedule)};
  const std::string text = message_of(options);
  CHECK_MESSAGE(tells(text, "first bad operator: rondo::sgd_"), text);
}

TEST_SUITE_END();
