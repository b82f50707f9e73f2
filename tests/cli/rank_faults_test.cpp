// One of two ranks fails, in each way and in each part of a run.

#include <doctest/doctest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "launched_ranks.h"
#include "support/campaign.h"
#include "support/contains.h"
#include "support/file_content.h"
#include "support/process.h"
#include "support/temp_dir.h"

using namespace rondo::test;

namespace {

struct RankFault {
  std::string where;
  std::string how;
};

/// A part of them; the long campaign has all. A rank that is frozen takes half a minute to be
/// ended.
std::vector<RankFault> faults() {
  if (campaign_scale() == 1) {
    return {{"start", "throw"},
            {"capture", "kill"},
            {"replay", "throw"},
            {"save", "kill"},
            {"validation", "throw"}};
  }
  std::vector<RankFault> all;
  for (const char* where : {"start", "capture", "replay", "save", "validation"}) {
    for (const char* how : {"throw", "kill", "freeze"}) {
      all.push_back({where, how});
    }
  }
  return all;
}

/// What `rondo launch` returns. A rank that is frozen does not end, so that the other one does
/// first.
int code_of(const RankFault& fault) {
  return fault.how == "kill" ? 128 + SIGKILL : 1;
}

}  // namespace

TEST_SUITE_BEGIN("cli/rank_faults");

TEST_CASE("whatever happens to a rank, all of them end, and the others name it and its cause") {
  for (const RankFault& fault : faults()) {
    CAPTURE(fault.where);
    CAPTURE(fault.how);
    const TempDir dir;
    const std::filesystem::path config = ranks_config(dir);
    std::ofstream(config, std::ios::app)
        << "\n[[trainer.init.callbacks]]\nFailingRank = { where = \"" << fault.where
        << "\", how = \"" << fault.how << "\" }\n";
    const std::vector<std::string> options = {
        "--plugin", RONDO_FAILING_RANK, "trainer.init.distributed.timeout=20s"};
    Process ranks(after({RONDO_LAUNCHER, "launch", "--log-dir", dir.path().string(), "-n", "2"},
                        after(fit(config, (dir / "run").string()), options)),
                  dir / "first");
    const int code = ranks.wait();
    const std::string first = content(dir / "first");
    CAPTURE(first);
    CHECK(code == code_of(fault));
    CHECK(contains(first, fault.how == "throw" ? "this rank fails" : "lost rank 1"));
    CHECK(contains(first, "rank 1"));
  }
}

TEST_SUITE_END();
