// The runs of tests/data/first_runs, as a new user would write them. Here train those over files
// that tests/data/make_tables.py makes; `.ci/tables` trains all of them over files of Debian
// packages.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "cli/lines_of.h"
#include "cli/metric_of.h"
#include "cli/run_here.h"
#include "support/python.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

namespace fs = std::filesystem;

namespace {

std::vector<fs::path> every_run() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(RONDO_SOURCE_DIR "/tests/data/first_runs")) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// `# expected: val/accuracy > 0.9`
struct Expected {
  std::string metric;
  double least = 0.0;
};

Expected expected_of(const fs::path& file) {
  std::istringstream line(lines_of(file).at(1));
  std::string word;
  Expected expected;
  line >> word >> word >> expected.metric >> word >> expected.least;
  return expected;
}

}  // namespace

TEST_SUITE_BEGIN("cli/first_runs");

TEST_CASE("twenty runs over tables and pictures have at most 25 lines each, and are sound") {
  const std::vector<fs::path> files = every_run();
  CHECK(files.size() >= 20);
  for (const fs::path& file : files) {
    CAPTURE(file.string());
    CHECK(lines_of(file).size() <= 25);
    CHECK_FALSE(expected_of(file).metric.empty());
    CHECK(run_here({"fit", file.string(), "--dry-run"}).code == 0);
  }
}

TEST_CASE("those over made files train to what they say") {
  if (skips_without("zlib")) {
    return;
  }
  const TempDir dir;
  const std::string command = fmt::format("{} {}/tests/data/make_tables.py {}",
                                          python_with("zlib"),
                                          RONDO_SOURCE_DIR,
                                          dir.path().string());
  REQUIRE(std::system(command.c_str()) == 0);
  for (const char* const name : {"passengers", "houses", "photos"}) {
    CAPTURE(std::string(name));
    const fs::path file =
        fs::path(RONDO_SOURCE_DIR "/tests/data/first_runs") / (std::string(name) + ".toml");
    const std::string data = dir.path().string();
    const Answer answer = run_here({"fit",
                                    file.string(),
                                    "--json",
                                    "--quiet",
                                    "-o",
                                    (dir.path() / "runs" / name).string(),
                                    fmt::format("trainer.fit.train_dataloader.data_dir={}", data),
                                    fmt::format("trainer.fit.val_dataloader.data_dir={}", data)});
    REQUIRE(answer.code == 0);
    const Expected expected = expected_of(file);
    CHECK(metric_of(answer, expected.metric) > expected.least);
  }
}

TEST_SUITE_END();
