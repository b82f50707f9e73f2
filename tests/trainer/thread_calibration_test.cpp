#include "trainer/thread_calibration.h"

#include <doctest/doctest.h>

#include <ATen/Parallel.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "callbacks/threshold_stopper.h"
#include "core/available_cores.h"
#include "core/file_system.h"
#include "support/probe_callback.h"
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

/// What a config file would say of a run, as far as it matters here.
std::string config(const std::string& loop, const std::string& others = "") {
  return "[trainer.init]\nseed = 1\n" + others + "[trainer.init.loop]\n" + loop;
}

/// Writes another number into a record.
void set_record(const TempDir& dir, int threads) {
  const std::string text = real_file_system()->read(dir / "threads.json");
  std::ofstream(dir / "threads.json") << "{\"threads\": " << threads << text.substr(text.find(','));
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

TEST_CASE("a record holds for the step: the length of the run and its logs may change") {
  const ThreadsScope scope;
  const TempDir dir;
  const auto recorded = [&](const std::string& text) {
    TrainerOptions options = options_in(dir, 0);
    options.config_text = text;
    return recorded_threads(Trainer(options, quiet_log()));
  };
  TrainerOptions options = options_in(dir, 0);
  options.config_text = config("max_steps = 6\n", "[trainer.init.logging]\nlog_steps = 1\n");
  Trainer(options, quiet_log()).fit(tiny_loader());
  CHECK(recorded(config("max_steps = 6\n")));
  CHECK(recorded(config("max_steps = 90\n", "[trainer.init.checkpoint]\nsteps = 5\n")));
  CHECK(recorded(config("", "[trainer.init.backend]\nenvironment = \"new\"\n")));
  CHECK_FALSE(recorded(config("grad_accum_steps = 2\n")));
  CHECK_FALSE(recorded(config("", "[trainer.init.backend]\nmode = \"eager\"\n")));
  CHECK_FALSE(recorded(config("", "[trainer.init.model.Mlp]\nsizes = [784, 10]\n")));
  CHECK_FALSE(recorded(config("", "[trainer.fit.train_dataloader]\nbatch_size = 8\n")));
}

TEST_CASE("the threads of a checkpoint go before those that would be found, and before a record") {
  const ThreadsScope scope;
  const TempDir dir;
  // More than are ever tried here: nothing but the checkpoint can give them.
  const int threads = available_cores() + 1;
  const auto fit_up_to = [&](int64_t updates, int wanted) {
    TrainerOptions options = options_in(dir, wanted);
    options.loop.max_steps = updates;
    options.checkpoint.steps = 1;
    Trainer(options, quiet_log()).fit(tiny_loader());
  };
  fit_up_to(2, threads);
  CHECK_FALSE(threads_of_run(dir.path()));
  fit_up_to(4, 0);
  CHECK(at::get_num_threads() == threads);
  CHECK(threads_of_run(dir.path()) == threads);
  CHECK_FALSE(recorded_threads(Trainer(options_in(dir, 0), quiet_log())));  // nobody has timed them

  const TempDir other;
  Trainer(options_in(other, 0), quiet_log()).fit(tiny_loader());
  std::filesystem::copy_file(other / "threads.json",
                             dir / "threads.json",
                             std::filesystem::copy_options::overwrite_existing);
  set_record(dir, 1);
  CHECK(recorded_threads(Trainer(options_in(dir, 0), quiet_log())) == 1);
  fit_up_to(6, 0);
  CHECK(at::get_num_threads() == threads);
}

TEST_CASE("who ends the run does not end what is timed before") {
  const ThreadsScope scope;
  const TempDir dir;
  TrainerOptions options = options_in(dir, 0);
  ProbeCallback::Options probe;
  probe.train_batch_end = [](Trainer& trainer) { trainer.request_stop("enough"); };
  options.callbacks.push_back(use<ProbeCallback>(probe));
  ThresholdStopper::Options stopper;
  stopper.metric = "val/loss";  // nothing is validated while updates are timed
  stopper.when = "epoch";
  options.callbacks.push_back(use<ThresholdStopper>(stopper));
  Trainer trainer(options, quiet_log());
  CHECK(trainer.fit(tiny_loader()).steps == 1);
  const std::string record = real_file_system()->read(dir / "threads.json");
  CHECK_MESSAGE(record.find(": 0.0") == std::string::npos, record);
}
