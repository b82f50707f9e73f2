#include "trainer/pymarlin_table.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "configs/toml_file.h"
#include "core/error.h"
#include "support/builtins.h"
#include "support/temp_dir.h"
#include "trainer/run_config.h"

TEST_SUITE_BEGIN("trainer/pymarlin_table");

using namespace rondo;
using rondo::test::builtins;
using rondo::test::TempDir;

namespace {

const std::string kPymarlinRun = R"(
[trainer.init]
model_dir = "runs/x"
seed = 1
model = { name = "Mlp", sizes = [784, 10] }
[trainer.init.optimizer.SGD]
lr = 0.1
[trainer.fit]
train_dataloader = { label = "train", dataset = "Glyphs", size = 20 }
val_dataloader = [{ label = "val", dataset = "Glyphs", size = 20, split = "val" }]
)";

RunConfig read_pymarlin(const std::string& more) {
  return read_run_config(parse_toml(kPymarlinRun + more, "run.toml"), builtins());
}

bool has_logger(const RunConfig& run, const std::string& name) {
  return std::any_of(run.init.loggers.begin(), run.init.loggers.end(), [&](const auto& logger) {
    return logger.name() == name;
  });
}

std::vector<Fault> pymarlin_faults(const std::string& more) {
  try {
    read_pymarlin(more);
  } catch (const ConfigError& error) {
    return error.faults;
  }
  return {};
}

}  // namespace

TEST_CASE("an empty table gives PyMarlin's defaults") {
  const RunConfig run = read_pymarlin("[trainer.pymarlin]\n");
  CHECK(run.init.loop.num_epochs == 1);
  CHECK(run.init.loop.eval_frequency.to_string() == "1ep");
  CHECK(run.init.precision.max_gradient_norm == 1.0);
  CHECK(run.init.logging.log_steps.to_string() == Time(1).to_string());
  CHECK(run.init.checkpoint.steps.to_string() == "1ep");
  CHECK(run.init.checkpoint.checkpoint_name == "model_{step}.pt");
  CHECK(run.fit->train.options().batch_size == 1);
  CHECK(run.fit->val.at(0).options().batch_size == 1);
  CHECK_FALSE(run.init.loop.device_train_microbatch_size);
  CHECK(has_logger(run, "TensorBoardLogger"));
  CHECK(has_logger(run, "ProgressLogger"));
}

TEST_CASE("its keys become rondo's, and the run is kept in rondo's words") {
  const RunConfig run = read_pymarlin(R"(
[trainer.pymarlin]
epochs = 3
train_batch_size = 12
gpu_batch_size_limit = 5
val_batch_size = 4
max_train_steps_per_epoch = 7
max_val_steps_per_epoch = 2
clip_grads = false
backend = "sp-amp"
writers = []
disable_tqdm = true
log_level = "WARNING"
checkpointer_args = { period = 2, file_prefix = "net" }
stats_args = { log_steps = 5 }
)");
  CHECK(run.init.loop.num_epochs == 3);
  CHECK(run.fit->train.options().batch_size == 12);
  CHECK(run.init.loop.device_train_microbatch_size == 3);
  CHECK(run.fit->val.at(0).options().batch_size == 4);
  CHECK(run.init.loop.train_subset_num_batches == 7);
  CHECK(run.init.loop.eval_steps->to_string() == Time(2).to_string());
  CHECK_FALSE(run.init.precision.max_gradient_norm);
  CHECK(run.init.precision.dtype == "fp16");
  CHECK(run.init.precision.initial_loss_scale == 4096.0);
  CHECK_FALSE(has_logger(run, "TensorBoardLogger"));
  CHECK_FALSE(has_logger(run, "ProgressLogger"));
  CHECK(run.init.logging.log_level == "warning");
  CHECK(run.init.checkpoint.steps.to_string() == "2ep");
  CHECK(run.init.checkpoint.checkpoint_name == "net_{step}.pt");
  CHECK(run.init.config_text.find("pymarlin") == std::string::npos);
  CHECK_NOTHROW(read_run_config(parse_toml(run.init.config_text, "kept.toml"), builtins()));
}

TEST_CASE("what the file says itself replaces a default, and must agree with a key that is given") {
  const std::string logging = "[trainer.init.logging]\nlog_steps = 50\n";
  CHECK(read_pymarlin(logging + "[trainer.pymarlin]\n").init.logging.log_steps.to_string() ==
        Time(50).to_string());
  CHECK(pymarlin_faults(logging + "[trainer.pymarlin]\nstats_args = { log_steps = 50 }\n").empty());
  const std::vector<Fault> faults =
      pymarlin_faults(logging + "[trainer.pymarlin]\nstats_args = { log_steps = 2 }\n");
  REQUIRE(faults.size() == 1);
  CHECK(faults[0].position.line == 14);
  CHECK(faults[0].message.find("run.toml:12") != std::string::npos);
  CHECK(faults[0].message.find("50") != std::string::npos);
}

TEST_CASE("backends with ranks are the table of ranks, and the precision of their name") {
  const RunConfig plain = read_pymarlin("[trainer.pymarlin]\nbackend = \"ddp\"\n");
  CHECK(plain.init.distributed);
  CHECK(plain.init.precision.dtype == "fp32");
  const RunConfig mixed = read_pymarlin("[trainer.pymarlin]\nbackend = \"ddp-amp\"\n");
  CHECK(mixed.init.distributed);
  CHECK(mixed.init.precision.dtype == "fp16");
  CHECK_FALSE(read_pymarlin("[trainer.pymarlin]\nbackend = \"sp\"\n").init.distributed);
}

TEST_CASE("a device that the file names itself replaces the choice of use_gpu") {
  CHECK(read_pymarlin("[trainer.init.backend]\ndevice = \"cpu\"\n[trainer.pymarlin]\n")
            .init.backend.device == "cpu");
  CHECK(read_pymarlin("[trainer.pymarlin]\nuse_gpu = false\n").init.backend.device == "cpu");
}

TEST_CASE(
    "P27: without load_filename a run begins with the file of the largest number in load_dir") {
  const TempDir dir;
  std::filesystem::create_directories(dir / "more");
  for (const char* name :
       {"net_9.pt", "more/net_10.pt", "net_model_11.pt", "other_12.pt", "net_.pt"}) {
    std::ofstream(dir / name) << "x";
  }
  const auto path_with = [&](const std::string& more) {
    return read_pymarlin("[trainer.pymarlin]\ncheckpointer_args = { load_dir = \"" +
                         dir.path().string() + "\"" + more + " }\n")
        .init.checkpoint.load.path.string();
  };
  CHECK(path_with(", file_prefix = \"net\"") == (dir / "more/net_10.pt").string());
  CHECK(path_with(", file_prefix = \"none\"") == (dir / "none_<number>.pt").string());
  CHECK(path_with(", load_filename = \"net_9.pt\"") == (dir / "net_9.pt").string());
}

TEST_CASE("what a run file cannot do is refused with what to do") {
  const std::vector<Fault> directory = pymarlin_faults(
      "[trainer.pymarlin]\ncheckpointer_args = { model_state_save_dir = \"models\" }\n");
  REQUIRE(directory.size() == 1);
  CHECK(directory[0].message.find("SaveCheckpointState") != std::string::npos);
  for (const char* key : {"log_model_steps = 5", "exclude_list = \"bias\""}) {
    const std::vector<Fault> faults =
        pymarlin_faults(std::string("[trainer.pymarlin]\nstats_args = { ") + key + " }\n");
    REQUIRE(faults.size() == 1);
    CHECK(faults[0].message.find("ComputeNorm") != std::string::npos);
  }
  const std::vector<Fault> dp = pymarlin_faults("[trainer.pymarlin]\nbackend = \"sp-amp-apex\"\n");
  REQUIRE(dp.size() == 1);
  CHECK(dp[0].message.find("sp-amp") != std::string::npos);
}

TEST_CASE("events of TensorBoard go where tb_log_dir says") {
  const RunConfig run =
      read_pymarlin("[trainer.pymarlin]\nwriter_args = { tb_log_dir = \"/tmp/events\" }\n");
  CHECK(run.init.config_text.find("/tmp/events") != std::string::npos);
}

TEST_CASE("unknown keys and values are faults at their place") {
  CHECK(pymarlin_faults("[trainer.pymarlin]\nepoch = 3\n").at(0).message.find("epochs") !=
        std::string::npos);
  CHECK(pymarlin_faults("[trainer.pymarlin]\nbackend = \"dpp\"\n").size() == 1);
  CHECK(pymarlin_faults("[trainer.pymarlin]\nwriters = [\"wandb\"]\n").size() == 1);
}

TEST_CASE("P18: the backend of one process is refused in one of several ranks") {
  const std::vector<std::pair<const char*, const char*>> variables = {
      {"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "29500"}};
  for (const auto& [name, value] : variables) {
    ::setenv(name, value, 1);
  }
  const std::vector<Fault> alone = pymarlin_faults("[trainer.pymarlin]\nbackend = \"sp-amp\"\n");
  const std::vector<Fault> together = pymarlin_faults("[trainer.pymarlin]\nbackend = \"ddp\"\n");
  for (const auto& variable : variables) {
    ::unsetenv(variable.first);
  }
  REQUIRE(alone.size() == 1);
  CHECK(alone[0].message.find("take \"ddp-amp\"") != std::string::npos);
  CHECK(together.empty());
}

TEST_SUITE_END();
