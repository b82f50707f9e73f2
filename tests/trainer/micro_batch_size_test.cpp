#include "trainer/micro_batch_size.h"

#include <doctest/doctest.h>

#include <exception>
#include <string>
#include <vector>

#include "callbacks/core/grad_accum_callback.h"
#include "configs/toml_file.h"
#include "core/error.h"
#include "models/builtin/mlp.h"
#include "support/builtins.h"
#include "support/contains.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// 100 bytes and 10 for each sample. \param tried  the sizes that were asked for
PredictBytes affine(std::vector<int64_t>& tried) {
  return [&tried](int64_t samples) {
    tried.push_back(samples);
    return 100 + 10 * samples;
  };
}

LoopOptions loop_of(const std::string& toml) {
  return read_run_config(parse_toml("[trainer.init]\nmodel_dir = \"runs\"\nmodel = { name = "
                                    "\"Mlp\", sizes = [1, 1] }\n" +
                                        toml,
                                    "run.toml"),
                         builtins())
      .init.loop;
}

}  // namespace

TEST_SUITE_BEGIN("trainer/micro_batch_size");

TEST_CASE("the largest half of a half of a batch that fits is found from below") {
  std::vector<int64_t> tried;
  CHECK(largest_that_fits(64, 740, affine(tried)) == 64);
  CHECK(tried == std::vector<int64_t>{8, 16, 32, 64});
  tried.clear();
  CHECK(largest_that_fits(64, 739, affine(tried)) == 32);
  CHECK(tried == std::vector<int64_t>{8, 16, 32});  // 64 is not even tried
  tried.clear();
  CHECK(largest_that_fits(64, 150, affine(tried)) == 4);
  CHECK(tried == std::vector<int64_t>{8, 4});
  CHECK(largest_that_fits(64, 110, affine(tried)) == 1);
  CHECK(!largest_that_fits(64, 109, affine(tried)));
  CHECK(largest_that_fits(5, 135, affine(tried)) == 3);
  CHECK(largest_that_fits(1, 110, affine(tried)) == 1);
}

TEST_CASE("a fit begins with the largest size that its plan and loop.memory_limit allow") {
  const TempDir dir;
  Mlp::Options wide;
  wide.sizes = {4, 1 << 12, 3};
  wide.input = "x";
  TrainerOptions options = tiny_options(dir / "run");
  options.model = use<Mlp>(wide);
  options.loop.eval_frequency = 0;
  options.loop.max_steps = 2;
  options.checkpoint.steps = 0;
  options.checkpoint.save_final_checkpoint = false;
  options.loop.device_train_microbatch_size = kAutoMicroBatch;
  const DataLoader loader = tiny_loader("train", 32, 16);
  const auto size_within = [&](int64_t limit, const char* mode) {
    options.loop.memory_limit = limit;
    options.backend.mode = mode;
    Trainer trainer(options, quiet_log());
    trainer.fit(loader);
    return trainer.slot<GradAccumCallback>().groups().micro_batch;
  };
  for (const char* mode : {"traced", "eager"}) {
    CAPTURE(mode);
    CHECK(size_within(int64_t{1} << 40, mode) == 16);
    std::string text;
    try {
      size_within(1, mode);
    } catch (const std::exception&) {
      text = describe(std::current_exception());
    }
    CHECK(contains(text, "even with one sample at once"));
  }
}

TEST_CASE("C41: the keys of micro-batches in a file") {
  const LoopOptions loop = loop_of(
      "loop = { max_steps = 1, device_train_microbatch_size = \"auto\", memory_limit = \"8GiB\" "
      "}\n");
  CHECK(loop.device_train_microbatch_size == kAutoMicroBatch);
  CHECK(loop.memory_limit == int64_t{8} << 30);
  CHECK(loop_of("loop = { max_steps = 1, device_train_microbatch_size = \"auto\", memory_limit = "
                "5000 }\n")
            .memory_limit == 5000);
  for (const char* wrong : {"device_train_microbatch_size = 0",
                            "device_train_microbatch_size = \"most\"",
                            "memory_limit = \"8 apples\"",
                            "memory_limit = 0"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(loop_of("loop = { max_steps = 1, " + std::string(wrong) + " }\n"), ConfigError);
  }
}

TEST_SUITE_END();
