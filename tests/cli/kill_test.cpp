// The program `rondo` under signals. The configs run for seconds at most.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "support/campaign.h"
#include "support/file_content.h"
#include "support/process.h"
#include "support/temp_dir.h"

using namespace rondo::test;

namespace fs = std::filesystem;

TEST_SUITE_BEGIN("cli/kill");

namespace {

/// A run that takes every state along: dropout, shuffling, accumulation, momentum.
fs::path config(const TempDir& dir, const std::string& extra = "") {
  std::ofstream(dir / "run.toml") << fmt::format(R"([trainer.init]
model_dir  = "{0}/run"
seed       = 1
model      = {{ name = "Mlp", sizes = [784, 16, 10], dropout = 0.2 }}
loop       = {{ max_steps = 60, eval_frequency = 6, grad_accum_steps = 2 }}
checkpoint = {{ steps = 4{1} }}
callbacks  = [{{ KeepNCheckpoints = {{ n = 2 }} }}, {{ KeepBestCheckpoints = {{ metric = "val/loss", n = 2 }} }}]

[trainer.init.optimizer.AdamW]
lr = 1e-3

[trainer.fit]
train_dataloader = {{ label = "train", dataset = "Glyphs", size = 100, batch_size = 8, shuffle = true, prefetch = 2 }}
val_dataloader   = [{{ label = "val", dataset = "Glyphs", size = 40, split = "val", batch_size = 20 }}]
)",
                                                 dir.path().string(),
                                                 extra);
  return dir / "run.toml";
}

bool has_file(const fs::path& run, const std::function<bool(const fs::path&)>& is_meant) {
  for (const auto& entry : fs::directory_iterator(run)) {
    if (is_meant(entry.path())) {
      return true;
    }
  }
  return false;
}

bool has_checkpoint(const fs::path& run) {
  return has_file(run, [](const fs::path& path) { return path.extension() == ".pt"; });
}

/// True once a save has begun: its file has no name of its own before the index knows of it.
bool has_begun_save(const fs::path& run) {
  return has_file(run, [](const fs::path& path) { return path.extension() == ".tmp"; });
}

/// Holds the lock of a file while it lives.
class HeldLock {
 public:
  explicit HeldLock(const fs::path& path) : fd_(::open(path.c_str(), O_RDWR | O_CREAT, 0644)) {
    REQUIRE(::flock(fd_, LOCK_EX | LOCK_NB) == 0);
  }

  HeldLock(const HeldLock&) = delete;
  HeldLock& operator=(const HeldLock&) = delete;

  ~HeldLock() { ::close(fd_); }

 private:
  int fd_;
};

/// The updates at which the training loss was logged.
std::vector<int64_t> steps_of_loss(const fs::path& metrics) {
  std::vector<int64_t> steps;
  std::ifstream file(metrics);
  for (std::string line; std::getline(file, line);) {
    if (line.find("\"name\":\"loss\"") != std::string::npos) {
      steps.push_back(std::stoll(line.substr(line.find(':') + 1)));
    }
  }
  return steps;
}

/// The exit code of `rondo verify-resume` of a short run.
int verify_short_run(const TempDir& dir,
                     const fs::path& run,
                     const std::vector<std::string>& arguments) {
  std::vector<std::string> line = {
      RONDO_LAUNCHER, "verify-resume", run.string(), "--steps=12", "--every=3", "--kills=1"};
  line.insert(line.end(), arguments.begin(), arguments.end());
  return Process(line, dir / "out").wait();
}

/// Kills a run at random moments; what the program says of it.
int verify_resume(const TempDir& dir, const fs::path& run, int kills, int ranks = 1) {
  Process process({RONDO_LAUNCHER,
                   "verify-resume",
                   run.string(),
                   "--steps=60",
                   "--every=3",
                   fmt::format("--kills={}", kills),
                   fmt::format("--ranks={}", ranks)},
                  dir / "out");
  const int code = process.wait();
  INFO(content(dir / "out"));
  CHECK(content(dir / "out").find("equal, bit for bit") != std::string::npos);
  return code;
}

/// A run that ends and saves only when it is told to.
std::vector<std::string> endless_fit(const TempDir& dir) {
  return {RONDO_LAUNCHER,
          "fit",
          config(dir).string(),
          "trainer.init.loop.max_steps=1000000",
          "trainer.init.checkpoint.steps=900000"};
}

}  // namespace

TEST_CASE("a run that is killed at random moments ends in the bits of the uninterrupted one") {
  const TempDir dir;
  CHECK(verify_resume(dir, config(dir), 4 * campaign_scale()) == 0);
}

TEST_CASE("the same with checkpoints written in the background") {
  const TempDir dir;
  CHECK(verify_resume(dir, config(dir, ", async = true"), 3 * campaign_scale()) == 0);
}

TEST_CASE("the same with two ranks that share the optimizer, one of which each kill hits") {
  const TempDir dir;
  std::ofstream(dir / "ranks.toml") << content(config(dir)) << "\n[trainer.init.distributed]\n"
                                    << "shard_optimizer = true\n";
  CHECK(verify_resume(dir, dir / "ranks.toml", campaign_scale() > 1 ? 200 : 2, 2) == 0);
}

TEST_CASE("a run without a seed is checked with one for all of its processes") {
  const TempDir dir;
  std::string text = content(config(dir));
  const std::string seed = "seed       = 1\n";
  const size_t at = text.find(seed);
  REQUIRE(at != std::string::npos);
  std::ofstream(dir / "seedless.toml") << text.erase(at, seed.size());
  CHECK(verify_resume(dir, dir / "seedless.toml", 1) == 0);
}

TEST_CASE(
    "verify-resume begins with the checkpoint that is typed, or with none, before the file's") {
  const TempDir dir;
  const fs::path absent = dir / "absent.pt";
  const fs::path run = config(dir, fmt::format(", load = {{ path = \"{}\" }}", absent.string()));
  CHECK(verify_short_run(dir, run, {}) == 1);
  CHECK(content(dir / "out").find(absent.string()) != std::string::npos);
  CHECK(verify_short_run(dir, run, {"--checkpoint", "none"}) == 0);
  CHECK(verify_short_run(dir, run, {"trainer.fit.ckpt_path=false"}) == 0);

  const std::string begun = (dir / "begun").string();
  Process fit({RONDO_LAUNCHER,
               "fit",
               run.string(),
               "--checkpoint=none",
               "-o",
               begun,
               "trainer.init.loop.max_steps=4"},
              dir / "out");
  REQUIRE(fit.wait() == 0);
  CHECK(verify_short_run(dir, run, {"--checkpoint", begun + "/checkpoint_4.pt"}) == 0);
  CHECK(verify_short_run(dir, run, {"--checkpoint", begun + "/checkpoint_5.pt"}) == 1);
}

TEST_CASE(
    "SIGHUP, SIGINT and SIGTERM end the current update, save, and exit with 128 + their number") {
  for (const int signal : {SIGHUP, SIGINT, SIGTERM}) {
    CAPTURE(signal);
    const TempDir dir;
    Process process(endless_fit(dir), dir / "out");
    REQUIRE(process.wait_for_output("Loss="));
    process.send(signal);
    CHECK(process.wait() == 128 + signal);
    CHECK(has_checkpoint(dir / "run"));
  }
}

TEST_CASE("a second Ctrl-C ends the run at once, also in the middle of its last save") {
  const TempDir dir;
  Process process(endless_fit(dir), dir / "out");
  REQUIRE(process.wait_for_output("Loss="));
  const HeldLock lock(dir / "run/checkpoints_index.toml.lock");  // the save waits for it for ever
  process.send(SIGINT);
  while (!has_begun_save(dir / "run")) {
    std::this_thread::yield();
  }
  process.send(SIGINT);
  CHECK(process.wait() == 128 + SIGINT);
  CHECK_FALSE(fs::exists(dir / "run/checkpoints_index.toml"));
}

TEST_CASE("a terminal that is closed sends SIGHUP more than once: the last save is finished") {
  const TempDir dir;
  Process process(endless_fit(dir), dir / "out");
  REQUIRE(process.wait_for_output("Loss="));
  {
    const HeldLock lock(dir / "run/checkpoints_index.toml.lock");
    process.send(SIGHUP);
    while (!has_begun_save(dir / "run")) {
      std::this_thread::yield();
    }
    process.send(SIGHUP);
    process.send(SIGTERM);  // what ends a session may send both
    process.send(SIGHUP);
  }
  CHECK(process.wait() == 128 + SIGHUP);
  CHECK(has_checkpoint(dir / "run"));
}

TEST_CASE("under nohup a SIGHUP changes nothing") {
  for (const char* argument : {"--max-restarts=0", "--max-restarts=1"}) {
    CAPTURE(argument);
    const TempDir dir;
    const auto before = std::signal(SIGHUP, SIG_IGN);  // the process inherits it
    std::vector<std::string> line = endless_fit(dir);
    line.insert(line.begin() + 3, argument);
    Process process(line, dir / "out");
    std::signal(SIGHUP, before);
    REQUIRE(process.wait_for_output("Loss="));
    process.send(SIGHUP);
    process.send(SIGTERM);
    CHECK(process.wait() == 128 + SIGTERM);
  }
}

TEST_CASE("a SIGHUP reaches a run that is started again when it dies") {
  const TempDir dir;
  std::vector<std::string> line = endless_fit(dir);
  line.insert(line.begin() + 3, "--max-restarts=1");
  Process process(line, dir / "out");
  REQUIRE(process.wait_for_output("Loss="));
  process.send(SIGHUP);
  CHECK(process.wait() == 128 + SIGHUP);
  CHECK(has_checkpoint(dir / "run"));
}

TEST_CASE("SIGUSR1 saves and the run goes on") {
  const TempDir dir;
  Process process(endless_fit(dir), dir / "out");
  REQUIRE(process.wait_for_output("Loss="));
  process.send(SIGUSR1);
  REQUIRE(process.wait_for_output("saved"));
  process.send(SIGTERM);
  CHECK(process.wait() == 128 + SIGTERM);
  CHECK(has_checkpoint(dir / "run"));
}

TEST_CASE("a run that dies is started again from its newest checkpoint, and goes on to its end") {
  const TempDir dir;
  Process process({RONDO_LAUNCHER,
                   "fit",
                   config(dir).string(),
                   "--max-restarts=2",
                   "trainer.init.loop.max_steps=4000"},
                  dir / "out");
  REQUIRE(process.wait_for_output("saved"));
  const std::string children =
      fmt::format("/proc/{0}/task/{0}/children", static_cast<int>(process.pid()));
  if (!fs::exists(children)) {
    MESSAGE("skipped: this kernel does not tell of children");
    return;
  }
  REQUIRE_FALSE(content(children).empty());
  const int child = std::stoi(content(children));
  ::kill(child, SIGKILL);
  CHECK(process.wait() == 0);
  const std::string out = content(dir / "out");
  CHECK(out.find("signal 9") != std::string::npos);
  CHECK(fs::exists(dir / "run/checkpoint_4000.pt"));
  CHECK(content(dir / "run/restarts.log").find("end 4000") != std::string::npos);
  const std::vector<int64_t> logged = steps_of_loss(dir / "run/metrics.jsonl");
  for (size_t i = 0; i < logged.size(); ++i) {
    CHECK(logged[i] == static_cast<int64_t>(i) + 1);
  }
  CHECK(logged.size() == 4000);
}

TEST_CASE("a run that comes no further is not started again for ever") {
  const TempDir dir;
  Process process({RONDO_LAUNCHER,
                   "fit",
                   config(dir).string(),
                   "--max-restarts=1",
                   "trainer.fit.ckpt_path=nowhere.pt"},
                  dir / "out");
  CHECK(process.wait() == 1);
  const std::string out = content(dir / "out");
  CHECK(out.find("restart 1") != std::string::npos);
  CHECK(out.find("restart 2") == std::string::npos);
}

TEST_CASE("a run whose weights become infinite keeps its last file, whatever restarts it") {
  const TempDir dir;
  const auto fit = [&](const char* gamma) {
    const std::string rates = fmt::format(
        "trainer.init.schedulers=[{{ StepLR = {{ initial_learning_rate = 1e-3, step_size = 7, "
        "gamma = {} }} }}]",
        gamma);
    Process process({RONDO_LAUNCHER,
                     "fit",
                     config(dir).string(),
                     "--max-restarts=1",
                     "trainer.init.loop.max_steps=8",
                     "trainer.init.callbacks=[{ KeepNCheckpoints = { n = 1 } }]",
                     rates},
                    dir / "out");
    return process.wait();
  };
  CHECK(fit("1e45") == 1);  // infinite as a float, from update 8 on, the last one
  CHECK(content(dir / "out").find("restart 1") != std::string::npos);
  CHECK(content(dir / "out").find("model/") != std::string::npos);
  CHECK(fs::exists(dir / "run/checkpoint_4.pt"));
  CHECK_FALSE(fs::exists(dir / "run/checkpoint_8.pt"));
  CHECK(fit("1.0") == 1);  // two attempts came no further
  fs::remove(dir / "run/restarts.log");
  CHECK(fit("1.0") == 0);
  CHECK(fs::exists(dir / "run/checkpoint_8.pt"));
}

TEST_SUITE_END();
