// What a program or a callback may do with a Trainer while a fit goes on, and what it may not.

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "callbacks/cleanup.h"
#include "core/error.h"
#include "loops/fit_run.h"
#include "models/builtin/mlp.h"
#include "support/probe_callback.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

TEST_SUITE_BEGIN("loops/validation_within_fit");

namespace {

/// A run of 6 updates that draws random numbers in each step, in train mode only.
TrainerOptions dropping_options(const TempDir& dir, const char* mode, int64_t grad_accum_steps) {
  TrainerOptions options = tiny_options(dir / "run");
  Mlp::Options mlp;
  mlp.sizes = {4, 8, 3};
  mlp.dropout = 0.5;
  mlp.input = "x";
  options.model = use<Mlp>(mlp);
  options.backend.mode = mode;
  options.loop.max_steps = 6;
  options.loop.eval_frequency = 3;
  options.loop.grad_accum_steps = grad_accum_steps;
  options.checkpoint.steps = 2;
  return options;
}

/// Fits with something done at the end of each batch, and says what came out.
std::pair<StateDict, std::vector<std::pair<int64_t, double>>> fit_with(
    const char* mode, int64_t grad_accum_steps, const std::function<void(Trainer&)>& at_batch_end) {
  const TempDir dir;
  TrainerOptions options = dropping_options(dir, mode, grad_accum_steps);
  ProbeCallback::Options probe;
  probe.train_batch_end = at_batch_end;
  std::vector<MemoryLogger::Entry> entries;
  options.callbacks = {use<ProbeCallback>(probe)};
  options.loggers = {use<MemoryLogger>({&entries, nullptr})};
  options.logging.log_steps = 1;
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train"), {tiny_loader("val", 4)});
  return {bits_of(trainer), values_of(entries, "loss")};
}

}  // namespace

TEST_CASE("a validation from a hook, within a stage of training, changes nothing in the run") {
  for (const char* mode : {"eager", "traced"}) {
    for (const int64_t group : {1, 2}) {
      CAPTURE(std::string(mode));
      CAPTURE(group);
      std::vector<double> results;
      const auto evaluate = [&](Trainer& trainer) {
        results.push_back(*trainer.validate(tiny_loader("more", 6)).number("more/loss"));
        trainer.predict(tiny_loader("more", 6));
      };
      const auto straight = fit_with(mode, group, {});
      const auto evaluated = fit_with(mode, group, evaluate);
      CHECK(first_difference(straight.first, evaluated.first).empty());
      CHECK(straight.second == evaluated.second);
      REQUIRE(results.size() >= 6);
      CHECK(results.front() != results.back());
    }
  }
}

TEST_CASE("between two batches of a fit a program may validate, but where the run validates") {
  const TempDir dir;
  const TempDir other;
  Trainer straight(dropping_options(dir, "traced", 1), quiet_log());
  straight.fit(tiny_loader("train"), {tiny_loader("val", 4)});
  Trainer trainer(dropping_options(other, "traced", 1), quiet_log());
  const auto run = trainer.start_fit(tiny_loader("train"), {tiny_loader("val", 4)});
  int refused = 0;
  do {
    if (run->is_validating() && trainer.state().executor != nullptr) {
      CHECK_THROWS_AS(trainer.validate(tiny_loader("more")), UsageError);
      ++refused;
    } else {
      CHECK(trainer.validate(tiny_loader("more")).number("more/loss"));
    }
  } while (run->advance());
  CHECK(refused > 0);
  CHECK(first_difference(bits_of(straight), bits_of(trainer)).empty());
}

TEST_CASE("a validation within a validation is refused, and the outer one goes on") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  int refused = 0;
  ProbeCallback::Options probe;
  probe.validate_batch_start = [&](Trainer& trainer, const Batch&) {
    CHECK_THROWS_AS(trainer.validate(tiny_loader("inner")), UsageError);
    CHECK_THROWS_AS(trainer.predict(tiny_loader("inner")), UsageError);
    ++refused;
  };
  options.callbacks = {use<ProbeCallback>(probe)};
  Trainer trainer(options, quiet_log());
  const double loss = *Trainer(tiny_options(dir / "plain"), quiet_log())
                           .validate(tiny_loader("val"))
                           .number("val/loss");
  CHECK(trainer.validate(tiny_loader("val")).number("val/loss") == loss);
  CHECK(refused == 5);
}

TEST_CASE("while a fit goes on, no checkpoint is loaded and no other fit begins") {
  const TempDir dir;
  const TempDir other;
  Trainer straight(dropping_options(dir, "eager", 1), quiet_log());
  straight.fit(tiny_loader("train"));
  const LoadFrom file(dir / "run/checkpoint_2.pt");
  Trainer trainer(dropping_options(other, "eager", 1), quiet_log());
  const auto run = trainer.start_fit(tiny_loader("train"));
  do {
    CHECK_THROWS_AS(trainer.load_checkpoint(file), UsageError);
    CHECK_THROWS_AS(trainer.load_checkpoint({}), UsageError);
    CHECK_THROWS_AS(trainer.validate(tiny_loader("val"), file), UsageError);
    CHECK_THROWS_AS(trainer.validate_all({tiny_loader("val")}, {(dir / "run/*.pt").string()}),
                    UsageError);
    CHECK_THROWS_AS(trainer.start_fit(tiny_loader("train")), UsageError);
  } while (run->advance() && trainer.state().plan != nullptr);
  while (run->advance()) {
  }
  CHECK(first_difference(bits_of(straight), bits_of(trainer)).empty());
}

TEST_SUITE_END();
