#include "trainer/run_memory.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "support/glyphs_run.h"
#include "support/temp_dir.h"
#include "trainer/memory_checks.h"
#include "trainer/rehearsal.h"

TEST_SUITE_BEGIN("trainer/run_memory_of_batches");

using namespace rondo;
using namespace rondo::test;

TEST_CASE("the predicted peak of convolutions, with batches made ahead, and without the data set") {
  if (!has_launched_heap()) {
    return;
  }
  const std::string loader = "trainer.fit.train_dataloader.";

  struct Case {
    std::string verify, size, batch_size, prefetch;
  };

  for (const Case& c : {Case{"first", "8192", "512", "4"},
                        Case{"off", "8192", "512", "4"},
                        Case{"off", "2048", "1024", "8"}}) {  // several passes are made ahead
    CAPTURE(c.verify);
    CAPTURE(c.size);
    const TempDir dir;
    const RunConfig run = glyphs_run(dir / "run",
                                     "[784, 10]",
                                     {"trainer.init.model={ name = \"Cnn\" }",
                                      loader + "size=" + c.size,
                                      loader + "batch_size=" + c.batch_size,
                                      loader + "prefetch=" + c.prefetch,
                                      "trainer.init.backend.verify=" + c.verify});
    const Rehearsal rehearsal = rehearse_again(run);
    check_peak(rehearsal, run);
  }
}

TEST_CASE("the predicted peak of a run whose validations take more than its training") {
  if (!has_launched_heap()) {
    return;
  }

  struct Case {
    std::string size, batch_size, prefetch, verify;
  };

  for (const Case& c : {Case{"24576", "2048", "0", "first"},  // a long pass
                        Case{"4096", "2048", "0", "off"},
                        Case{"5000", "2048", "0", "first"},  // with a short batch
                        Case{"24576", "2048", "2", "off"},
                        Case{"4096", "2048", "8", "first"}}) {  // a queue longer than the pass
    CAPTURE(c.size);
    CAPTURE(c.prefetch);
    CAPTURE(c.verify);
    const TempDir dir;
    const RunConfig run =
        glyphs_run(dir / "run",
                   "[784, 1000, 1000, 10]",
                   {"trainer.init.backend.verify=" + c.verify,
                    "trainer.fit.val_dataloader={ dataset = \"Glyphs\", size = " + c.size +
                        ", batch_size = " + c.batch_size + ", prefetch = " + c.prefetch + " }"});
    const Rehearsal rehearsal = rehearse_again(run);
    check_peak(rehearsal, run);
    CHECK(memory_of(rehearsal.steps, run).validation >= 2048 * (784 * 4 + 8));
  }
}

TEST_CASE("batches of a validation are those of the loader that takes most") {
  const TempDir dir;
  const RunConfig run = glyphs_run(
      dir / "run",
      "[784, 10]",
      {"trainer.fit.val_dataloader=[{ label = \"a\", dataset = \"Glyphs\", size = 4096, batch_size "
       "= "
       "2048, prefetch = 4 }, { label = \"b\", dataset = \"Glyphs\", size = 160, batch_size = 16, "
       "prefetch = 8 }]"});
  const RunMemory memory = memory_of(rehearse_all_steps(run).steps, run);
  CHECK(memory.validation == 4096 * (784 * 4 + 8));
}

TEST_CASE("the predicted peak of groups whose batches are what takes memory") {
  if (!has_launched_heap()) {
    return;
  }
  constexpr int64_t kBatch = 2048 * (784 * 4 + 8);
  for (const int64_t batches : {8, 2}) {  // whole groups and a short one; only a short one
    CAPTURE(batches);
    const TempDir dir;
    const RunConfig run =
        glyphs_run(dir / "run",
                   "[784, 10]",
                   {"trainer.init.loop.grad_accum_steps=3",
                    "trainer.fit.train_dataloader.batch_size=2048",
                    "trainer.fit.train_dataloader.size=" + std::to_string(2048 * batches)});
    const Rehearsal rehearsal = rehearse_again(run);
    const RunMemory memory = memory_of(rehearsal.steps, run);
    CHECK(memory.inputs == kBatch);
    CHECK(memory.ahead == (batches == 8 ? 3 : 1) * kBatch);
    check_peak(rehearsal, run);
  }
}

TEST_CASE("the predicted peak is that of a training of the whole run") {
  if (!has_launched_heap()) {
    return;
  }

  struct Case {
    std::string hidden, group, size, batch_size, prefetch;
    int64_t updates;
  };

  for (const Case& c :
       {Case{"1000, 1000", "1", "4000", "2048", "0", 8},   // one whole batch and a short one
        Case{"1000, 1000", "2", "8000", "2048", "0", 10},  // the last group has a short batch
        Case{"1000, 1000", "3", "6000", "1024", "0", 10},  // the same, in three batches
        Case{"1000, 1000", "1", "5376", "512", "8", 40},   // a queue longer than short passes
        Case{"500", "1", "2800", "2048", "4", 8},          // a queue longer than the pass
        Case{"1000", "2", "8000", "2048", "1", 10}}) {     // used batches that lie there still
    CAPTURE(c.group);
    CAPTURE(c.size);
    const TempDir dir;
    const RunConfig run =
        glyphs_run(dir / "run",
                   "[784, " + c.hidden + ", 10]",
                   {"trainer.init.loop={ max_steps = 99, grad_accum_steps = " + c.group + " }",
                    "trainer.init.backend.verify=off",
                    "trainer.fit.train_dataloader={ dataset = \"Glyphs\", size = " + c.size +
                        ", batch_size = " + c.batch_size + ", prefetch = " + c.prefetch + " }"});
    const std::vector<StepReport> steps = rehearse_all_steps(run).steps;
    const FilledHeap heap;
    check_near(rehearse(run, c.updates).grown_by, memory_of(steps, run));
  }
}

TEST_SUITE_END();
