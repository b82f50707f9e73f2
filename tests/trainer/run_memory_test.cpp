#include "trainer/run_memory.h"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "support/glyphs_run.h"
#include "support/temp_dir.h"
#include "trainer/memory_checks.h"
#include "trainer/rehearsal.h"

TEST_SUITE_BEGIN("trainer/run_memory");

using namespace rondo;
using namespace rondo::test;

namespace {

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
  if (!has_launched_heap()) {
    return;
  }
  const TempDir dir;
  const RunConfig run = glyphs_run(dir / "run", "[784, 2048, 2048, 10]");
  const Rehearsal rehearsal = rehearse_again(run);
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
  if (!has_launched_heap()) {
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
    const Rehearsal rehearsal = rehearse_again(run);
    check_peak(rehearsal, run, inside_operators(run));
  }
}

TEST_CASE("the predicted peak takes in what operators need inside") {
  if (!has_launched_heap()) {
    return;
  }
  const TempDir dir;
  const RunConfig run = glyphs_run(dir / "run",
                                   "[784, 2800, 2800, 10]",
                                   {"trainer.init.loop.max_steps=99",
                                    "trainer.init.backend.verify=off",
                                    "trainer.init.precision.dtype=bf16"});
  const Rehearsal rehearsal = rehearse_again(run);
  const FilledHeap heap;
  check_near(rehearse(run, 10).grown_by, memory_of(rehearsal, run));
}

TEST_SUITE_END();
