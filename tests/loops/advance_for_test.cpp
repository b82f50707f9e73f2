#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"
#include "loops/fit_run.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

TEST_SUITE_BEGIN("loops/advance_for");

using namespace rondo;
using namespace rondo::test;

namespace {

using Entries = std::vector<MemoryLogger::Entry>;

constexpr std::chrono::nanoseconds kOneInstruction{0};

TrainerOptions options_for(const TempDir& dir, int64_t accumulation, Entries& entries) {
  TrainerOptions options = tiny_options(dir / "run");
  options.backend.mode = "traced";
  options.loop.max_steps = 9;
  options.loop.eval_frequency = 4;
  options.loop.grad_accum_steps = accumulation;
  options.logging.log_steps = 2;
  MemoryLogger::Options memory;
  memory.entries = &entries;
  options.loggers = {use<MemoryLogger>(memory)};
  return options;
}

bool is_loss(const MemoryLogger::Entry& entry) {
  return entry.name.find("loss") != std::string::npos;
}

// Advances until a step is in progress.
void enter_step(FitRun& run) {
  while (!run.is_in_step()) {
    REQUIRE(run.advance_for(kOneInstruction));
  }
}

}  // namespace

TEST_CASE("a fit in pieces of one instruction equals an uninterrupted one, bit for bit") {
  for (const char* mode : {"traced", "eager"}) {
    for (const int64_t accumulation : {1, 2}) {
      const TempDir dir;
      Entries expected;
      TrainerOptions options = options_for(dir, accumulation, expected);
      options.backend.mode = mode;
      Trainer whole(options, quiet_log());
      whole.fit(tiny_loader("train"), {tiny_loader("val")});

      const TempDir other;
      Entries got;
      options = options_for(other, accumulation, got);
      options.backend.mode = mode;
      Trainer trainer(options, quiet_log());
      const auto run = trainer.start_fit(tiny_loader("train"), {tiny_loader("val")});
      int pieces = 0;
      int inside = 0;
      while (run->advance_for(kOneInstruction)) {
        ++pieces;
        inside += run->is_in_step() ? 1 : 0;
      }
      CHECK(run->result().steps == 9);
      CHECK((inside > 10) == (std::string(mode) == "traced"));
      CHECK(first_difference(bits_of(whole), bits_of(trainer)) == "");
      REQUIRE(got.size() == expected.size());
      for (size_t i = 0; i < got.size(); ++i) {
        CHECK(got[i].name == expected[i].name);
        CHECK((!is_loss(got[i]) || got[i].value == expected[i].value));
      }
    }
  }
}

TEST_CASE("pieces and whole batches may take turns") {
  const TempDir dir;
  Entries entries;
  Trainer whole(options_for(dir, 1, entries), quiet_log());
  whole.fit(tiny_loader("train"));
  const TempDir other;
  Trainer trainer(options_for(other, 1, entries), quiet_log());
  FitRun run(trainer, tiny_loader("train"), {}, {});
  for (int i = 0; run.advance_for(kOneInstruction); ++i) {
    if (i % 3 == 0 && !run.advance()) {
      break;
    }
  }
  while (run.advance()) {
  }
  CHECK(first_difference(bits_of(whole), bits_of(trainer)) == "");
}

TEST_CASE("while a step is in progress nothing is saved, loaded or run; finish_step ends that") {
  const TempDir dir;
  Entries entries;
  Trainer trainer(options_for(dir, 1, entries), quiet_log());
  FitRun run(trainer, tiny_loader("train"), {}, {});
  enter_step(run);
  const int64_t before = trainer.state().global_step();
  CHECK_THROWS_AS(trainer.save_checkpoint(), UsageError);
  CHECK_THROWS_AS(trainer.load_checkpoint({}), UsageError);
  CHECK_THROWS_AS(trainer.state().backend->invalidate("a test"), UsageError);
  CHECK(run.is_in_step());
  run.finish_step();
  CHECK_FALSE(run.is_in_step());
  CHECK(trainer.state().global_step() == before + 1);
  CHECK(std::filesystem::exists(trainer.save_checkpoint()));
  run.finish_step();  // nothing to finish
  CHECK(trainer.state().global_step() == before + 1);
}

TEST_CASE("a stop that is requested inside a step waits for the end of its update") {
  const TempDir dir;
  Entries entries;
  Trainer trainer(options_for(dir, 2, entries), quiet_log());
  FitRun run(trainer, tiny_loader("train"), {}, {});
  enter_step(run);
  const int64_t before = trainer.state().global_step();
  trainer.request_stop("enough");
  while (run.advance_for(kOneInstruction)) {
  }
  CHECK(run.result().steps == before + 1);
}

TEST_CASE("a fit that is given up inside a step finishes the step") {
  const TempDir dir;
  Entries entries;
  Trainer trainer(options_for(dir, 1, entries), quiet_log());
  int64_t updates = 0;
  {
    FitRun run(trainer, tiny_loader("train"), {}, {});
    enter_step(run);
    updates = trainer.state().global_step() + 1;
  }
  CHECK(trainer.state().global_step() == updates);
  const TempDir other;
  TrainerOptions options = options_for(other, 1, entries);
  options.loop.max_steps = updates;
  Trainer whole(options, quiet_log());
  whole.fit(tiny_loader("train"));
  CHECK(first_difference(bits_of(whole).at("model").as_dict(),
                         bits_of(trainer).at("model").as_dict()) == "");
}

TEST_SUITE_END();
