#include "trainer/thread_calibration.h"

#include <doctest/doctest.h>

#include <ATen/Parallel.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/available_cores.h"
#include "core/file_system.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

TEST_SUITE_BEGIN("trainer/thread_calibration");

using namespace rondo;
using namespace rondo::test;

namespace {

/// Gives the process its threads back.
class ThreadsScope {
 public:
  ~ThreadsScope() { at::set_num_threads(before_); }

 private:
  int before_ = at::get_num_threads();
};

TrainerOptions options_in(const TempDir& dir, int threads) {
  TrainerOptions options = tiny_options(dir.path());
  options.backend.threads = threads;
  options.loop.max_steps = 6;
  return options;
}

}  // namespace

TEST_CASE("the fastest number of threads is found once, recorded, and used again") {
  const ThreadsScope scope;
  const TempDir dir;
  {
    Trainer trainer(options_in(dir, 0), quiet_log());
    CHECK_FALSE(recorded_threads(trainer));
    trainer.fit(tiny_loader());
    CHECK(recorded_threads(trainer) == at::get_num_threads());
    CHECK(at::get_num_threads() <= available_cores());
    CHECK(trainer.state().global_step() == 6);
  }
  const std::filesystem::path record = dir / "threads.json";
  const std::filesystem::file_time_type written = std::filesystem::last_write_time(record);
  Trainer again(options_in(dir, 0), quiet_log());
  again.fit(tiny_loader());
  CHECK(std::filesystem::last_write_time(record) == written);
}

TEST_CASE("finding the threads leaves no trace in the run") {
  const ThreadsScope scope;
  const TempDir dir;
  const TempDir other;
  Trainer found(options_in(dir, 0), quiet_log());
  found.fit(tiny_loader());
  Trainer fixed(options_in(other, at::get_num_threads()), quiet_log());
  fixed.fit(tiny_loader());
  CHECK(first_difference(bits_of(found), bits_of(fixed)) == "");
}

TEST_CASE("a record from other circumstances, or one that is broken, is not used") {
  const ThreadsScope scope;
  const TempDir dir;
  const Trainer trainer(options_in(dir, 0), quiet_log());
  for (const char* text :
       {"", "{\"threads\": 2}", "{\"threads\": 1,\n \"circumstances\": \"x\"}"}) {
    std::ofstream(dir / "threads.json") << text;
    CHECK_FALSE(recorded_threads(trainer));
  }
}
