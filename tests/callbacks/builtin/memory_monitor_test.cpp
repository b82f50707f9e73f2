#include "callbacks/builtin/memory_monitor.h"

#include <doctest/doctest.h>

#include <vector>

#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

TEST_SUITE_BEGIN("callbacks/builtin/memory_monitor");

TEST_CASE("C79: on the CPU the memory of the process is logged, on log steps") {
  const TempDir dir;
  std::vector<MemoryLogger::Entry> entries;
  MemoryLogger::Options memory;
  memory.entries = &entries;
  TrainerOptions options = tiny_options(dir / "run");
  options.callbacks = {use<MemoryMonitor>()};
  options.loggers = {use<MemoryLogger>(memory)};
  options.loop.max_steps = 4;
  options.logging.log_steps = 2;
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train"));
  const auto current = values_of(entries, "memory/current_resident");
  const auto peak = values_of(entries, "memory/peak_resident");
  REQUIRE(current.size() == 2);
  REQUIRE(peak.size() == 2);
  CHECK(current[0].first == 2);
  CHECK(current[0].second > 0.001);   // LibTorch alone takes more than a megabyte
  CHECK(current[0].second < 1000.0);  // and this test less than a terabyte
  CHECK(peak[1].second >= current[1].second);
}

TEST_SUITE_END();
