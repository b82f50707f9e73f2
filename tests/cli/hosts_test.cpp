// Ranks on two hosts, which are network namespaces with a cable between them.

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "launched_ranks.h"
#include "support/file_content.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace fs = std::filesystem;

using namespace rondo::test;

namespace {

bool is_done(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

/// Two hosts, 10.77.0.1 and 10.77.0.2, on a network that nobody else sees.
class TwoHosts {
 public:
  TwoHosts() : name_(fmt::format("rondo{}h", ::getpid())) {
    are_there_ = is_done("command -v ip") && add(1) && add(2) &&
                 is_done(fmt::format(
                     "ip link add cable netns {0}1 type veth peer name cable netns {0}2", name_)) &&
                 connect(1) && connect(2);
  }

  TwoHosts(const TwoHosts&) = delete;
  TwoHosts& operator=(const TwoHosts&) = delete;

  ~TwoHosts() {
    is_done(fmt::format("ip netns del {}1", name_));
    is_done(fmt::format("ip netns del {}2", name_));
  }

  bool are_there() const { return are_there_; }

  /// The words that start one rank on a host, of two.
  std::vector<std::string> launch(int host, const std::vector<std::string>& command) const {
    return after({"/bin/sh",
                  "-c",
                  "exec ip netns exec \"$@\"",
                  "sh",
                  fmt::format("{}{}", name_, host),
                  RONDO_LAUNCHER,
                  "launch",
                  "-n",
                  "1",
                  "--nodes",
                  "2",
                  fmt::format("--node-rank={}", host - 1),
                  "--master-addr=10.77.0.1",
                  "--master-port=29577"},
                 command);
  }

  void cut_cable() const { is_done(fmt::format("ip -n {}1 link set cable down", name_)); }

 private:
  bool add(int host) const { return is_done(fmt::format("ip netns add {}{}", name_, host)); }

  bool connect(int host) const {
    const std::string in_host = fmt::format("ip -n {}{} ", name_, host);
    return is_done(in_host + fmt::format("addr add 10.77.0.{}/24 dev cable", host)) &&
           is_done(in_host + "link set cable up") && is_done(in_host + "link set lo up");
  }

  std::string name_;
  bool are_there_ = false;
};

/// Says so when there are none.
bool can_test(const TwoHosts& hosts) {
  if (!hosts.are_there()) {
    MESSAGE("skipped: no network namespaces (needs root and the command ip)");
  }
  return hosts.are_there();
}

}  // namespace

TEST_SUITE_BEGIN("cli/hosts");

TEST_CASE("ranks on two hosts give the bytes of one process, with a sharded optimizer too") {
  const TwoHosts hosts;
  if (!can_test(hosts)) {
    return;
  }
  const TempDir dir;
  const fs::path config = ranks_config(dir);
  const fs::path one = dir / "one";
  Process alone(after(after({RONDO_LAUNCHER}, fit(config, one.string())),
                      {"trainer.init.distributed.virtual_ranks=2"}),
                dir / "alone");
  REQUIRE(alone.wait() == 0);
  for (const char* sharded : {"false", "true"}) {
    CAPTURE(sharded);
    const fs::path two = dir.path() / fmt::format("two_{}", sharded);
    const std::vector<std::string> command =
        after(fit(config, two.string()),
              {"trainer.init.distributed.transport=gloo",
               "trainer.init.distributed.timeout=20s",
               fmt::format("trainer.init.distributed.shard_optimizer={}", sharded)});
    Process first(hosts.launch(1, command), dir / "first");
    Process second(hosts.launch(2, command), dir / "second");
    const int code = first.wait();
    INFO(content(dir / "first"));
    INFO(content(dir / "second"));
    REQUIRE(code == 0);
    CHECK(second.wait() == 0);
    CHECK(different_bits(two / "checkpoint_60.pt", one / "checkpoint_60.pt").empty());
  }
}

TEST_CASE("a cable that is cut ends the ranks of both hosts, which say so") {
  const TwoHosts hosts;
  if (!can_test(hosts)) {
    return;
  }
  const TempDir dir;
  const std::vector<std::string> command = after(fit(ranks_config(dir), (dir / "run").string()),
                                                 {"trainer.init.distributed.transport=gloo",
                                                  "trainer.init.distributed.timeout=10s",
                                                  "trainer.init.checkpoint.steps=200",
                                                  "trainer.init.loop.max_steps=100000000"});
  Process first(hosts.launch(1, command), dir / "first");
  Process second(hosts.launch(2, command), dir / "second");
  REQUIRE(first.wait_for_output("saved"));
  hosts.cut_cable();
  CHECK(first.wait() == 1);
  CHECK(second.wait() == 1);
  CHECK(content(dir / "first").find("rank 1") != std::string::npos);
  CHECK(content(dir / "second").find("rank 0") != std::string::npos);
}

TEST_SUITE_END();
