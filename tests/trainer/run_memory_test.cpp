#include "trainer/run_memory.h"

#include <doctest/doctest.h>
#include <malloc.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "support/glyphs_run.h"
#include "support/temp_dir.h"
#include "trainer/rehearsal.h"

TEST_SUITE_BEGIN("trainer/run_memory");

using namespace rondo;
using rondo::test::glyphs_run;
using rondo::test::TempDir;

namespace {

/// What is freed goes back to the system at once, so that holes in the heap do not count. Not so
/// under a sanitizer, which keeps what is freed.
bool gives_memory_back() {
#if defined(__SANITIZE_ADDRESS__)
  MESSAGE("skipped: the sanitizer keeps what is freed");
  return false;
#else
  REQUIRE(::mallopt(M_MMAP_THRESHOLD, 128 * 1024) == 1);
  return true;
#endif
}

void check_near(int64_t grown_by, const RunMemory& memory, int64_t unpredicted = 0) {
  CAPTURE(grown_by);
  CAPTURE(memory.peak);
  const auto tolerance = std::max<int64_t>(4 << 20, grown_by / 50);
  CHECK(grown_by >= memory.peak - tolerance);
  CHECK(grown_by <= memory.peak + tolerance + unpredicted);
}

void check_peak(const Rehearsal& rehearsal, RunConfig run, int64_t unpredicted = 0) {
  run.fit->train = rehearsal.train;
  run.fit->val = rehearsal.val;
  check_near(rehearsal.grown_by, memory_of(rehearsal.steps, run), unpredicted);
}

/// What operators may take inside beyond the prediction: where a processor has no bf16 arithmetic,
/// libraries sum a bf16 product in a float32 buffer of the result's size.
int64_t inside_operators(const RunConfig& run) {
  std::ifstream file("/proc/cpuinfo");
  const std::string processor{std::istreambuf_iterator<char>(file), {}};
  const bool has_bf16 = processor.find("bf16") != std::string::npos;
  constexpr int64_t kLargestProduct = 2000 * 2000;
  return run.init.precision.dtype == "bf16" && !has_bf16 ? 4 * kLargestProduct : 0;
}

}  // namespace

TEST_CASE("the memory that a plan predicts is what training takes") {
  if (!gives_memory_back()) {
    return;
  }
  const TempDir dir;
  const RunConfig run = glyphs_run(dir / "run", "[784, 2048, 2048, 10]");
  rehearse_all_steps(run);  // libraries keep memory of their own from their first use
  const Rehearsal rehearsal = rehearse_all_steps(run);
  const RunMemory memory = memory_of(rehearsal.steps, run);
  const int64_t parameters = 4 * (784 * 2048 + 2048 + 2048 * 2048 + 2048 + 2048 * 10 + 10);
  CHECK(memory.state.at("model") == parameters);
  CHECK(memory.state.at("optimizer state") >= 2 * parameters);
  CHECK(memory.state.at("optimizer state") <= 2 * parameters + 1024);
  CHECK(memory.inputs == 16 * 784 * 4 + 16 * 8);
  CHECK(memory.modules.size() == 3);
  check_peak(rehearsal, run);
}

TEST_CASE("the predicted peak is that of the moment that needs most, whatever the run does") {
  if (!gives_memory_back()) {
    return;
  }
  const std::string init = "trainer.init.";
  const std::string accumulates = init + "loop.grad_accum_steps=3";
  const std::string is_unverified = init + "backend.verify=off";
  const std::string explains = init + "backend.on_nan=explain";
  const std::string bf16 = init + "precision.dtype=bf16";
  const std::string is_sparse = init + "sparsity.sparsity=0.5";
  const std::string short_group = "trainer.fit.train_dataloader.size=64";
  const std::string is_long = init + "loop.max_steps=99";
  const std::string loader = "trainer.fit.train_dataloader={ dataset = \"Glyphs\", prefetch = 0, ";
  // With a short group and batch at the end of a long pass, and of one that is a single group.
  const std::string large_batches = loader + "size = 2656, batch_size = 256 }";
  const std::string one_short_group = loader + "size = 1100, batch_size = 512 }";
  const std::vector<std::vector<std::string>> runs = {
      {is_unverified},
      {accumulates},
      {accumulates, is_unverified},
      {accumulates, short_group},
      {is_long, large_batches},
      {is_long, accumulates, is_unverified, large_batches},
      {accumulates, one_short_group},
      {explains},
      {explains, accumulates},
      {explains, is_unverified},
      {is_sparse},
      {is_sparse, accumulates},
      {bf16},
      {bf16, accumulates},
      {bf16, accumulates, is_unverified}};
  for (const std::vector<std::string>& overrides : runs) {
    std::string what;
    for (const std::string& assignment : overrides) {
      what += assignment + ' ';
    }
    CAPTURE(what);
    const TempDir dir;
    const RunConfig run = glyphs_run(dir / "run", "[784, 2000, 2000, 10]", overrides);
    rehearse_all_steps(run);
    const Rehearsal rehearsal = rehearse_all_steps(run);
    check_peak(rehearsal, run, inside_operators(run));
  }
}

TEST_CASE("the predicted peak of convolutions, with batches made ahead, and without the data set") {
  if (!gives_memory_back()) {
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
    rehearse_all_steps(run);
    const Rehearsal rehearsal = rehearse_all_steps(run);
    check_peak(rehearsal, run);
  }
}

TEST_CASE("the predicted peak of a run whose validations take more than its training") {
  if (!gives_memory_back()) {
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
    rehearse_all_steps(run);
    const Rehearsal rehearsal = rehearse_all_steps(run);
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
  if (!gives_memory_back()) {
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
    rehearse_all_steps(run);
    const Rehearsal rehearsal = rehearse_all_steps(run);
    const RunMemory memory = memory_of(rehearsal.steps, run);
    CHECK(memory.inputs == kBatch);
    CHECK(memory.ahead == (batches == 8 ? 3 : 1) * kBatch);
    check_peak(rehearsal, run);
  }
}

TEST_CASE("the predicted peak is that of a training of the whole run") {
  if (!gives_memory_back()) {
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
    check_near(rehearse(run, c.updates).grown_by, memory_of(steps, run));
  }
}

TEST_CASE("the predicted peak takes in what operators need inside") {
  if (!gives_memory_back()) {
    return;
  }
  const TempDir dir;
  const RunConfig run = glyphs_run(dir / "run",
                                   "[784, 2800, 2800, 10]",
                                   {"trainer.init.loop.max_steps=99",
                                    "trainer.init.backend.verify=off",
                                    "trainer.init.precision.dtype=bf16"});
  rehearse_all_steps(run);
  const Rehearsal rehearsal = rehearse_all_steps(run);
  check_near(rehearse(run, 10).grown_by, memory_of(rehearsal, run));
}
