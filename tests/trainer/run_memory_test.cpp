#include "trainer/run_memory.h"

#include <doctest/doctest.h>

#include <string>

#include "support/glyphs_run.h"
#include "support/temp_dir.h"
#include "trainer/dry_run.h"

// Whether the predicted peak is what a process takes is measured by bench/memory_bench.
TEST_SUITE_BEGIN("trainer/run_memory");

using namespace rondo;
using namespace rondo::test;

TEST_CASE("a plan's memory is that of the state, the batches and the arenas") {
  const TempDir dir;
  const RunConfig run = glyphs_run(dir / "run", "[784, 256, 128, 10]");
  const RunMemory memory = memory_of(dry_run_of_all_steps(run).steps, run);
  const int64_t parameters = 4 * (784 * 256 + 256 + 256 * 128 + 128 + 128 * 10 + 10);
  CHECK(memory.state.at("model") == parameters);
  CHECK(memory.state.at("optimizer state") >= 2 * parameters);
  CHECK(memory.state.at("optimizer state") <= 2 * parameters + 1024);
  CHECK(memory.inputs == 16 * 784 * 4 + 16 * 8);
  CHECK(memory.modules.size() == 3);
  CHECK(memory.arenas >= 4 * 784 * 256);  // the largest gradient
  CHECK(memory.of_replays() >= memory.of_state() + memory.arenas);
  CHECK(memory.peak >= memory.of_replays());
}

TEST_CASE("batches of a validation are those of the loader that takes most") {
  const TempDir dir;
  const RunConfig run = glyphs_run(
      dir / "run",
      "[784, 10]",
      {"trainer.fit.val_dataloader=[{ label = \"a\", dataset = \"Glyphs\", size = 4096, batch_size "
       "= 2048, prefetch = 4 }, { label = \"b\", dataset = \"Glyphs\", size = 160, batch_size = "
       "16, prefetch = 8 }]"});
  const RunMemory memory = memory_of(dry_run_of_all_steps(run).steps, run);
  CHECK(memory.validation == 4096 * (784 * 4 + 8));
}

TEST_CASE("batches made ahead are those of a group, or of a short one where there is no other") {
  constexpr int64_t kBatch = 256 * (784 * 4 + 8);
  for (const int64_t batches : {8, 2}) {
    CAPTURE(batches);
    const TempDir dir;
    const RunConfig run =
        glyphs_run(dir / "run",
                   "[784, 10]",
                   {"trainer.init.loop.grad_accum_steps=3",
                    "trainer.fit.train_dataloader.batch_size=256",
                    "trainer.fit.train_dataloader.size=" + std::to_string(256 * batches)});
    const RunMemory memory = memory_of(dry_run_of_all_steps(run).steps, run);
    CHECK(memory.inputs == kBatch);
    CHECK(memory.ahead == (batches == 8 ? 3 : 1) * kBatch);
  }
}

TEST_SUITE_END();
