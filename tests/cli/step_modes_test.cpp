#include <doctest/doctest.h>
#include <torch/types.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "callbacks/callback.h"
#include "cli/cli_main.h"
#include "cli/count_of.h"
#include "core/file_system.h"
#include "support/contains.h"
#include "support/temp_dir.h"
#include "trainer/registries.h"
#include "trainer/trainer.h"

using namespace rondo;
using rondo::test::contains;
using rondo::test::count_of;
using rondo::test::TempDir;

namespace {

/// Reads the loss in the step, which cannot be recorded.
class ReadsLoss final : public Callback {
 public:
  void on_after_backward(Trainer&, Model&, Outputs& outputs) override {
    outputs["loss"].item<float>();
  }
};

/// Reads in the step whether the loss is positive, which replays can compare.
class AsksForSign final : public Callback {
 public:
  void on_after_backward(Trainer&, Model&, Outputs& outputs) override {
    (outputs["loss"] > 0).item<bool>();
  }
};

/// What a command line writes to stdout and stderr.
std::string output_of(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "rondo");
  std::vector<char*> pointers;
  for (std::string& argument : arguments) {
    pointers.push_back(argument.data());
  }
  std::ostringstream out;
  std::streambuf* const cout_before = std::cout.rdbuf(out.rdbuf());
  std::streambuf* const cerr_before = std::cerr.rdbuf(out.rdbuf());
  const int code =
      cli_main(static_cast<int>(pointers.size()), pointers.data(), [](Registries& registries) {
        registries.callbacks.add<ReadsLoss>("ReadsLoss", "Reads the loss in the step.");
        registries.callbacks.add<AsksForSign>("AsksForSign", "Reads a flag in the step.");
      });
  std::cout.rdbuf(cout_before);
  std::cerr.rdbuf(cerr_before);
  CHECK(code == 0);
  return out.str();
}

/// A run of 8 updates with one callback.
struct ModesRun {
  explicit ModesRun(const std::string& callback) {
    std::ofstream(dir / "run.toml")
        << "[trainer.init]\nmodel_dir = \"" << (dir / "run").string()
        << "\"\nseed = 1\n"
           "model = { name = \"Mlp\", sizes = [784, 10] }\n"
           "backend = { mode = \"traced\" }\n"
           "loop = { max_steps = 8 }\n"
           "callbacks = [{ "
        << callback
        << " = true }]\n"
           "loggers = [{ ProgressLogger = false }]\n"
           "[trainer.init.optimizer.SGD]\nlr = 0.1\n"
           "[trainer.fit]\n"
           "train_dataloader = { dataset = \"Glyphs\", size = 32, batch_size = 4 }\n";
    summary = output_of({"fit", (dir / "run.toml").string()});
    log = real_file_system()->read(dir / "run/logs/latest/run.log");
    inspected = output_of({"inspect", (dir / "run").string()});
  }

  TempDir dir;
  std::string summary;
  std::string log;
  std::string inspected;
};

/// The line of a step in what `rondo inspect` prints.
std::string line_of(const std::string& text, const std::string& step) {
  const size_t begin = text.find(step + ": ");
  REQUIRE(begin != std::string::npos);
  return text.substr(begin, text.find('\n', begin) - begin);
}

}  // namespace

TEST_SUITE_BEGIN("cli/step_modes");

TEST_CASE("a fit whose step cannot be recorded warns once, and its summary says what ran eagerly") {
  const ModesRun run("ReadsLoss");
  CHECK(count_of(run.log, "ReadsLoss.on_after_backward") == 1);
  CHECK(contains(run.log, "log_metrics"));  // what to write instead

  CHECK(contains(run.summary, "step train/update ran as it is written 7 times, in "));
  CHECK(contains(run.summary, " % of the time: ReadsLoss.on_after_backward"));

  const std::string step = line_of(run.inspected, "train_update.0");
  for (const char* fact : {"\"mode\": \"eager\"",
                           "\"reason\": \"ReadsLoss.on_after_backward",
                           "\"eager_runs\": 7",
                           "\"share_of_time\": 0.",
                           "\"replays\": 0"}) {
    CHECK_MESSAGE(contains(step, fact), fact << " is not in: " << step);
  }
}

TEST_CASE("a fit whose step reads a flag is replayed, and inspect lists the guard") {
  const ModesRun run("AsksForSign");
  CHECK_FALSE(contains(run.log, "AsksForSign"));
  CHECK_FALSE(contains(run.summary, "as it is written"));

  const std::string step = line_of(run.inspected, "train_update.0");
  for (const char* fact : {"\"mode\": \"guarded\"",
                           "\"guards\": [{\"read\": \"aten::_local_scalar_dense in "
                           "AsksForSign.on_after_backward",
                           "\"answer\": \"true\"",
                           "\"eager_runs\": 0",
                           "\"replays\": 6"}) {
    CHECK_MESSAGE(contains(step, fact), fact << " is not in: " << step);
  }
}

TEST_SUITE_END();
