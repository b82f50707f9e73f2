#include <doctest/doctest.h>

#include <fstream>
#include <string>
#include <vector>

#include "cli/json_table.h"
#include "core/file_system.h"
#include "support/glyphs_run.h"
#include "support/process.h"
#include "support/sanitizer.h"
#include "support/temp_dir.h"

TEST_SUITE_BEGIN("cli/process_memory");

using namespace rondo;
using rondo::test::glyphs_toml;
using rondo::test::kHasHeapOfSanitizer;
using rondo::test::number;
using rondo::test::Process;
using rondo::test::table;
using rondo::test::table_of;
using rondo::test::TempDir;

namespace {

using Overrides = std::vector<std::string>;

// Its activations are many blocks of some megabytes, which leave holes where they lie in the heap.
const Overrides kConvolutions = {
    "trainer.init.model={ name = \"Cnn\" }",
    "trainer.init.loop={ max_steps = 30, eval_frequency = 10 }",
    "trainer.fit.train_dataloader={ dataset = \"Glyphs\", size = 640, batch_size = 64 }",
    "trainer.fit.val_dataloader={ dataset = \"Glyphs\", size = 400, batch_size = 200 }"};

// So do batches of several sizes.
const Overrides kLargeBatches = {
    "trainer.init.loop={ max_steps = 30, eval_frequency = 10 }",
    "trainer.fit.train_dataloader={ dataset = \"Glyphs\", size = 10100, batch_size = 5000 }",
    "trainer.fit.val_dataloader={ dataset = \"Glyphs\", size = 5050, batch_size = 5000 }"};

struct Ended {
  std::string out;
  int64_t peak_bytes = 0;
};

/// What a command of the program did, as a user starts it.
Ended run_as_user(const TempDir& dir, const std::string& command, const Overrides& overrides) {
  const std::filesystem::path config = dir / "run.toml";
  std::ofstream(config) << glyphs_toml(dir / "run");
  std::vector<std::string> line = {RONDO_LAUNCHER, command, config.string(), "--json"};
  line.insert(line.end(), overrides.begin(), overrides.end());
  Process process(line, dir / "out");
  const int code = process.wait();
  const std::string out = real_file_system()->read(dir / "out");
  REQUIRE_MESSAGE(code == 0, out);
  return {out, process.peak_bytes()};
}

std::string json_in(const std::string& out) {
  const size_t begin = out.find("{\"");
  REQUIRE(begin != std::string::npos);
  return out.substr(begin, out.find('\n', begin) - begin);
}

}  // namespace

TEST_CASE("the process that a plan foretells is the one that a fit becomes") {
  if (kHasHeapOfSanitizer) {
    MESSAGE("skipped: the sanitizer keeps what is freed");
    return;
  }

  struct Case {
    Overrides overrides;
    double tolerance;
  };

  for (const Case& c : {Case{kConvolutions, 0.02},     // of code, each touches another part
                        Case{kLargeBatches, 0.05}}) {  // a loader may be late by a batch
    CAPTURE(c.overrides.back());
    const TempDir dir;
    const ConfigTable plan = table_of(json_in(run_as_user(dir, "plan", c.overrides).out));
    const double foretold = number(table(plan, "run"), "process");
    const auto taken = static_cast<double>(run_as_user(dir, "fit", c.overrides).peak_bytes);
    CHECK(taken == doctest::Approx(foretold).epsilon(c.tolerance));
  }
}

TEST_SUITE_END();
