#include "callbacks/builtin/scoped_flags.h"

#include <ATen/Context.h>
#include <doctest/doctest.h>

#include <stdexcept>
#include <vector>

#include "core/error.h"
#include "support/probe_callback.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

bool is_deterministic() {
  return at::globalContext().deterministicAlgorithms();
}

}  // namespace

TEST_SUITE_BEGIN("callbacks/builtin/scoped_flags");

TEST_CASE("T126: flags hold in their loop only, and are given back also after a failure") {
  for (const bool fails : {false, true}) {
    const TempDir dir;
    std::vector<bool> in_training;
    std::vector<bool> in_validation;
    ProbeCallback::Options probe;
    probe.train_batch_start = [&](Trainer&, const Batch&) {
      in_training.push_back(is_deterministic());
      if (fails) {
        throw std::runtime_error("planted");
      }
    };
    probe.validate_batch_start = [&](Trainer&, const Batch&) {
      in_validation.push_back(is_deterministic());
    };
    TorchFlags flags;
    flags.deterministic_algorithms = true;
    TrainerOptions options = tiny_options(dir / "run");
    options.callbacks = {use<ScopedTrainFlags>(flags), use<ProbeCallback>(probe)};
    options.loop.max_steps = 1;
    Trainer trainer(options, quiet_log());
    const Loaders val = {tiny_loader("val", 2)};
    if (fails) {
      CHECK_THROWS_AS(trainer.fit(tiny_loader("train"), val), HookError);
    } else {
      trainer.fit(tiny_loader("train"), val);
      CHECK(in_validation == std::vector<bool>{false});
    }
    CHECK(in_training == std::vector<bool>{true});
    CHECK_FALSE(is_deterministic());
  }
}

TEST_CASE("T126: the flags of validations") {
  const TempDir dir;
  bool is_on = false;
  const bool before = at::globalContext().benchmarkCuDNN();
  ProbeCallback::Options probe;
  probe.validate_batch_start = [&](Trainer&, const Batch&) {
    is_on = at::globalContext().benchmarkCuDNN() != before;
  };
  TorchFlags flags;
  flags.benchmark_cudnn = !before;
  TrainerOptions options = tiny_options(dir / "run");
  options.callbacks = {use<ScopedValidateFlags>(flags), use<ProbeCallback>(probe)};
  Trainer trainer(options, quiet_log());
  trainer.validate(tiny_loader("val"));
  CHECK(is_on);
  CHECK(at::globalContext().benchmarkCuDNN() == before);
}

TEST_CASE("T126: global flags hold as long as the Trainer") {
  const TempDir dir;
  const auto is_on = [] { return at::globalContext().benchmarkCuDNN(); };
  const bool before = is_on();
  std::vector<bool> seen;
  ProbeCallback::Options probe;
  probe.train_batch_start = [&](Trainer&, const Batch&) { seen.push_back(is_on()); };
  probe.validate_batch_start = [&](Trainer&, const Batch&) { seen.push_back(is_on()); };
  TorchFlags flags;
  flags.benchmark_cudnn = !before;
  TrainerOptions options = tiny_options(dir / "run");
  options.callbacks = {use<GlobalFlags>(flags), use<ProbeCallback>(probe)};
  options.loop.max_steps = 1;
  {
    Trainer trainer(options, quiet_log());
    trainer.fit(tiny_loader("train"), {tiny_loader("val", 1)});
    CHECK(is_on() == !before);
  }
  REQUIRE(seen.size() >= 2);
  for (const bool was_on : seen) {
    CHECK(was_on == !before);
  }
  CHECK(is_on() == before);
  options.model_dir = "";  // refused, after pre_setup or before it
  CHECK_THROWS(Trainer(options, quiet_log()));
  CHECK(is_on() == before);
}

TEST_SUITE_END();
