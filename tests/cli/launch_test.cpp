// `rondo launch` with ranks that are shell scripts, which take no time to start.

#include <doctest/doctest.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/count_of.h"
#include "support/file_content.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace fs = std::filesystem;

using rondo::test::content;
using rondo::test::count_of;
using rondo::test::Process;
using rondo::test::TempDir;

namespace {

struct Launched {
  int code = -1;
  std::string text;
};

/// Runs `rondo launch OPTIONS sh -c SCRIPT`, with the ranks' logs in `dir`.
Launched launch(const TempDir& dir, const std::string& options, const std::string& script) {
  const std::string command = std::string("'") + RONDO_LAUNCHER + "' launch --log-dir '" +
                              dir.path().string() + "' " + options + " sh -c '" + script + "' >'" +
                              (dir / "text").string() + "' 2>&1";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, content(dir / "text")};
}

Launched launch_words(const std::string& words) {
  const TempDir dir;
  const std::string command = std::string("'") + RONDO_LAUNCHER + "' launch " + words + " >'" +
                              (dir / "text").string() + "' 2>&1";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, content(dir / "text")};
}

}  // namespace

TEST_SUITE_BEGIN("cli/launch");

TEST_CASE("C87: ranks find their place in the environment; rank 0 has the terminal") {
  const TempDir dir;
  const std::string script =
      "echo $RANK of $WORLD_SIZE, $LOCAL_RANK of $LOCAL_WORLD_SIZE on $NODE_RANK, $MASTER_ADDR, "
      "$PYTHONUNBUFFERED, $TORCH_NCCL_ASYNC_ERROR_HANDLING; test $MASTER_PORT -gt 0";
  const Launched one_host = launch(dir, "-n 2", script);
  CHECK(one_host.code == 0);
  CHECK(one_host.text == "0 of 2, 0 of 2 on 0, 127.0.0.1, 1, 1\n");
  CHECK(content(dir / "rank1.log") == "1 of 2, 1 of 2 on 0, 127.0.0.1, 1, 1\n");

  const Launched second_host =
      launch(dir, "-n 2 --nodes 2 --node-rank 1 --master-addr alpha --master-port 29511", script);
  CHECK(second_host.code == 0);
  CHECK(content(dir / "rank2.log") == "2 of 4, 0 of 2 on 1, alpha, 1, 1\n");
  CHECK(content(dir / "rank3.log") == "3 of 4, 1 of 2 on 1, alpha, 1, 1\n");
}

TEST_CASE("C86: the code of the rank that failed first is returned, and the others are ended") {
  const TempDir dir;
  const Launched result =
      launch(dir, "-n 3", "if [ $RANK = 2 ]; then echo the cause; exit 7; fi; exec sleep 100000");
  CHECK(result.code == 7);
  CHECK(result.text.find("rank 2 ended with code 7") != std::string::npos);
  CHECK(result.text.find("rank2.log") != std::string::npos);
  CHECK(result.text.find("the cause") != std::string::npos);

  const Launched killed = launch(dir, "-n 2", "[ $RANK = 1 ] || exec sleep 100000; kill -9 $$");
  CHECK(killed.code == 128 + SIGKILL);
  CHECK(killed.text.find("rank 1 died of signal 9") != std::string::npos);
}

TEST_CASE("C85: numbers of ranks and hosts that do not fit are refused, and so are bad commands") {
  struct Row {
    const char* words;
    const char* named;
  };

  const Row rows[] = {
      {"-n 2", "expected a command"},
      {"-n 0 fit a.toml", "--ranks"},
      {"-n 5000 fit a.toml", "4096"},
      {"--nodes 2 fit a.toml", "--node-rank"},
      {"--nodes 2 --node-rank 2 fit a.toml", "--node-rank"},
      {"--nodes 2 --node-rank 1 fit a.toml", "--master-addr"},
      {"--nodes 2 --node-rank 1 --master-addr alpha fit a.toml", "--master-port"},
      {"--node-rank 1 fit a.toml", "--nodes"},
      {"--rank 2 fit a.toml", "did you mean \"--ranks\""},
      {"-n 2 fit", "RUN.toml is missing"},
      {"-n 2 fit a.toml --jsn", "did you mean \"--json\""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.words);
    const Launched result = launch_words(row.words);
    CAPTURE(result.text);
    CHECK(result.code == 2);
    CHECK(result.text.find(row.named) != std::string::npos);
  }
  CHECK(launch_words("-n 2 ./no_such_program").code == 127);
}

TEST_CASE("ranks that fail are started again, at last with half as many") {
  const TempDir dir;
  const std::string script = "[ $RANK = 0 ] || exit 0; echo with $WORLD_SIZE; [ $WORLD_SIZE = 2 ]";
  const Launched result = launch(dir, "-n 4 --max-restarts 3 --min-ranks 1", script);
  CHECK(result.code == 0);
  CHECK(count_of(result.text, "with 4") == 2);
  CHECK(count_of(result.text, "with 2") == 1);

  const Launched vain = launch(dir, "-n 2 --max-restarts 1", "exit 1");
  CHECK(vain.code == 1);
  CHECK(count_of(vain.text, "starting 2 ranks again") == 1);
  const Launched refused = launch(dir, "-n 2 --max-restarts 1", "exit 2");
  CHECK(refused.code == 2);  // bad usage does not get better
  CHECK(count_of(refused.text, "again") == 0);
}

TEST_CASE("a rank that was asked to stop is not started again, nor are the others") {
  const TempDir dir;
  const Launched result = launch(dir, "-n 2 --max-restarts 2", "[ $RANK = 0 ] || exit 143");
  CHECK(result.code == 143);
  CHECK(count_of(result.text, "again") == 0);
}

TEST_CASE("signals reach all ranks, which end as they like") {
  const TempDir dir;
  const std::string script =
      "trap \"echo heard; exit 143\" TERM; echo ready; while :; do sleep 0.01; done";
  Process launcher(
      {RONDO_LAUNCHER, "launch", "--log-dir", dir.path().string(), "-n", "2", "sh", "-c", script},
      dir / "text");
  REQUIRE(launcher.wait_for_output("ready"));
  while (content(dir / "rank1.log").find("ready") == std::string::npos) {
  }
  launcher.send(SIGTERM);
  CHECK(launcher.wait() == 143);
  CHECK(content(dir / "text").find("heard") != std::string::npos);
  CHECK(content(dir / "rank1.log").find("heard") != std::string::npos);
}

TEST_SUITE_END();
