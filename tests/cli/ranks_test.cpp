// Runs of several processes, as users start them.

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "distributed/free_port.h"
#include "distributed/heartbeat.h"
#include "launched_ranks.h"
#include "support/file_content.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace fs = std::filesystem;

using namespace rondo::test;

namespace {

/// `rondo launch` of two ranks, the second of which keeps its log in `dir`.
std::vector<std::string> launch(const TempDir& dir,
                                const std::vector<std::string>& command,
                                const std::vector<std::string>& options = {}) {
  return after({RONDO_LAUNCHER, "launch", "--log-dir", dir.path().string(), "-n", "2"},
               after(options, command));
}

/// A command of rondo as `"$@"` of a script.
std::vector<std::string> in_script(const std::string& script,
                                   const std::vector<std::string>& command) {
  return after({"sh", "-c", script, "sh", RONDO_LAUNCHER}, command);
}

int64_t entries_of(const fs::path& directory) {
  return std::distance(fs::directory_iterator(directory), fs::directory_iterator());
}

}  // namespace

TEST_SUITE_BEGIN("cli/ranks");

TEST_CASE("two processes give the bytes of one with two virtual ranks, and rank 0 alone writes") {
  const TempDir dir;
  const fs::path run = ranks_config(dir);
  const fs::path two = dir / "two";
  const fs::path one = dir / "one";
  Process ranks(launch(dir, fit(run, two.string())), dir / "ranks");
  const int code = ranks.wait();
  INFO(content(dir / "ranks"));
  INFO(content(dir / "rank1.log"));
  REQUIRE(code == 0);
  Process alone(after(after({RONDO_LAUNCHER}, fit(run, one.string())),
                      {"trainer.init.distributed.virtual_ranks=2"}),
                dir / "alone");
  REQUIRE(alone.wait() == 0);
  CHECK(different_bits(two / "checkpoint_60.pt", one / "checkpoint_60.pt").empty());

  // P34, C82
  CHECK(entries_of(two / "logs") == 2);  // one directory, and the link to it
  CHECK(content(dir / "ranks").find("update") != std::string::npos);
  CHECK(content(dir / "rank1.log").find("saved") == std::string::npos);

  // They share a prediction, too.
  std::vector<std::string> predictions;
  for (const char* jobs : {"1", "2"}) {
    Process predict({RONDO_LAUNCHER, "predict", run.string(), "-o", two.string(), "--jobs", jobs},
                    dir / "predict");
    const int predicted = predict.wait();
    INFO(content(dir / "predict"));
    REQUIRE(predicted == 0);
    predictions.push_back(content(two / "logs" / "latest" / "predictions.pt"));
  }
  CHECK(predictions[0] == predictions[1]);

  // The same ranks, one of which dies, started again.
  const fs::path broken = dir / "broken";
  const std::string script =
      fmt::format("echo $$ > {0}/pid$RANK; exec \"$@\"", dir.path().string());
  Process restarted(
      launch(dir, in_script(script, fit(run, broken.string())), {"--max-restarts", "1"}),
      dir / "restarted");
  REQUIRE(restarted.wait_for_output("saved"));
  ::kill(std::stoi(content(dir / "pid1")), SIGKILL);
  CHECK(restarted.wait() == 0);
  INFO(content(dir / "restarted"));
  CHECK(content(dir / "restarted").find("signal 9") != std::string::npos);
  CHECK(different_bits(two / "checkpoint_60.pt", broken / "checkpoint_60.pt").empty());
}

TEST_CASE("a restart with fewer ranks before the first save is still the same run") {
  const TempDir dir;
  const fs::path run = ranks_config(dir);
  Process alone(
      after(after({RONDO_LAUNCHER}, fit(run, (dir / "alone").string())),
            {"trainer.init.distributed.virtual_ranks=2", "trainer.init.loop.max_steps=10"}),
      dir / "out");
  REQUIRE(alone.wait() == 0);
  const std::string script = R"([ $WORLD_SIZE = 1 ] || exit 1; exec "$@")";
  const auto command =
      after(fit(run, (dir / "restarted").string()), {"trainer.init.loop.max_steps=10"});
  Process restarted(
      launch(dir, in_script(script, command), {"--max-restarts", "2", "--min-ranks", "1"}),
      dir / "ranks");
  const int code = restarted.wait();
  INFO(content(dir / "ranks"));
  REQUIRE(code == 0);
  CHECK(different_bits(dir / "alone" / "checkpoint_10.pt", dir / "restarted" / "checkpoint_10.pt")
            .empty());
}

TEST_CASE(
    "C66: ranks of different configurations end before the first step, and say what differs") {
  const TempDir dir;
  const std::string script = "exec \"$@\" trainer.init.optimizer.AdamW.lr=0.00$((RANK+1))";
  Process ranks(launch(dir, in_script(script, fit(ranks_config(dir), (dir / "run").string()))),
                dir / "ranks");
  CHECK(ranks.wait() == 1);
  for (const char* log : {"ranks", "rank1.log"}) {
    const std::string said = content(dir / log);
    CAPTURE(said);
    CHECK(said.find("ranks differ in the configuration: rank 1 has \"lr = 0.002\"") !=
          std::string::npos);
  }
  CHECK_FALSE(fs::exists(dir / "run" / "checkpoint_5.pt"));
}

TEST_CASE("ranks of another launcher leave the terminal to rank 0, and a log when they fail") {
  const TempDir dir;
  const auto rank = [&](int number, int port, const std::vector<std::string>& command) {
    return after({"/usr/bin/env",
                  fmt::format("RANK={}", number),
                  "WORLD_SIZE=2",
                  fmt::format("LOCAL_RANK={}", number),
                  "LOCAL_WORLD_SIZE=2",
                  "MASTER_ADDR=127.0.0.1",
                  fmt::format("MASTER_PORT={}", port),
                  "TMPDIR=" + dir.path().string(),
                  RONDO_LAUNCHER},
                 command);
  };
  const std::vector<std::string> command =
      after(fit(ranks_config(dir), (dir / "run").string()),
            {"trainer.init.loop.max_steps=4", "trainer.init.distributed.virtual_ranks=2"});
  const int port = rondo::free_port();
  Process first(rank(0, port, command), dir / "first");
  Process second(rank(1, port, command), dir / "second");
  CHECK(first.wait() == 0);
  CHECK(second.wait() == 0);
  CHECK(content(dir / "first").find("done: 4 updates") != std::string::npos);
  CHECK(content(dir / "second").empty());

  Process failing(rank(1, port, {"fit", (dir / "none.toml").string()}), dir / "failing");
  CHECK(failing.wait() == 2);
  const std::string said = content(dir / "failing");
  const size_t place = said.find("rank 1 ended with code 2: see ");
  REQUIRE(place == 0);
  const std::string log =
      said.substr(said.find(" see ") + 5, said.find('\n') - said.find(" see ") - 5);
  CHECK(content(log).find("none.toml") != std::string::npos);

  // What ranks do not do together is no matter of theirs, whatever the environment says.
  Process described({"/usr/bin/env", "RANK=1", RONDO_LAUNCHER, "describe", "AdamW"},
                    dir / "described");
  CHECK(described.wait() == 0);
  CHECK(content(dir / "described").find("AdamW") != std::string::npos);
}

TEST_CASE("a rank that hangs" * doctest::skip()) {
  rondo::beat();
  ::pause();
}

TEST_CASE("ranks that hang are ended") {
  const TempDir dir;
  const std::string own = fs::read_symlink("/proc/self/exe").string();
  Process ranks(
      launch(dir, {"--hang-timeout", "1", own, "--test-case=a rank that hangs", "--no-skip"}),
      dir / "out");
  CHECK(ranks.wait() == 1);
  CHECK(content(dir / "out").find("they hang") != std::string::npos);
}

TEST_CASE("a program that begins one batch" * doctest::skip()) {
  rondo::beat();
}

TEST_CASE("what a rank starts does not take another file for the launcher's memory") {
  const TempDir dir;
  const fs::path file = dir / "other";
  const std::string zeros(64, '\0');
  std::ofstream(file) << zeros;
  const std::string own = fs::read_symlink("/proc/self/exe").string();
  const std::string script =
      fmt::format("exec 9<>'{}'; RONDO_HEARTBEAT=9 exec \"$@\"", file.string());
  Process program({"/bin/sh",
                   "-c",
                   script,
                   "sh",
                   own,
                   "--test-case=a program that begins one batch",
                   "--no-skip"},
                  dir / "out");
  CHECK(program.wait() == 0);
  CHECK(content(file) == zeros);
}

TEST_SUITE_END();
