#include "trainer/thread_calibration.h"

#include <doctest/doctest.h>

#include <ATen/Parallel.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "callbacks/builtin/threshold_stopper.h"
#include "core/available_cores.h"
#include "core/error.h"
#include "core/file_system.h"
#include "data/tensor_dataset.h"
#include "models/from_module.h"
#include "optim/sgd.h"
#include "support/probe_callback.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "support/with_threads.h"
#include "trainer/trainer.h"

TEST_SUITE_BEGIN("trainer/thread_calibration");

using namespace rondo;
using namespace rondo::test;

namespace {

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
  const WithThreads as_before;
  const TempDir dir;
  {
    Trainer trainer(options_in(dir, 0), quiet_log());
    CHECK_FALSE(recorded_threads(trainer, tiny_loader()));
    trainer.fit(tiny_loader());
    CHECK(recorded_threads(trainer, tiny_loader()) == at::get_num_threads());
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
  const WithThreads as_before;
  const TempDir dir;
  const TempDir other;
  Trainer found(options_in(dir, 0), quiet_log());
  found.fit(tiny_loader());
  Trainer fixed(options_in(other, at::get_num_threads()), quiet_log());
  fixed.fit(tiny_loader());
  CHECK(first_difference(bits_of(found), bits_of(fixed)) == "");
}

TEST_CASE("a record from other circumstances, or one that is broken, is not used") {
  const WithThreads as_before;
  const TempDir dir;
  const Trainer trainer(options_in(dir, 0), quiet_log());
  for (const char* text :
       {"", "{\"threads\": 2}", "{\"threads\": 1,\n \"circumstances\": \"x\"}"}) {
    std::ofstream(dir / "threads.json") << text;
    CHECK_FALSE(recorded_threads(trainer, tiny_loader()));
  }
}

TEST_CASE("a record holds for the step: the length of the run and its logs may change") {
  const WithThreads as_before;
  const TempDir dir;
  const auto recorded = [&](const std::string& text) {
    TrainerOptions options = options_in(dir, 0);
    options.config_text = text;
    return recorded_threads(Trainer(options, quiet_log()), tiny_loader());
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

TEST_CASE("a record holds for the step of a run that was built in code") {
  const WithThreads as_before;
  const TempDir dir;
  const auto recorded = [&](const DataLoader& train, const auto& change) {
    TrainerOptions options = options_in(dir, 0);
    change(options);
    return recorded_threads(Trainer(options, quiet_log()), train);
  };
  const auto nothing = [](TrainerOptions&) {};
  const auto model_of = [](const auto& make) {
    return [make](TrainerOptions& options) {
      options.model = from_module(make, "x", cross_entropy("label"));
    };
  };
  const auto linear = [](int64_t outputs) {
    return [outputs] { return torch::nn::Sequential(torch::nn::Linear(4, outputs)); };
  };
  Trainer(options_in(dir, 0), quiet_log()).fit(tiny_loader());
  CHECK(recorded(tiny_loader(), nothing));
  CHECK(recorded(tiny_loader("train", 90), [](TrainerOptions& options) {
    options.loop.max_steps = 90;
    options.checkpoint.steps = 5;
  }));
  CHECK(recorded(tiny_loader(), model_of(linear(3))));
  CHECK_FALSE(recorded(tiny_loader(), model_of(linear(5))));
  CHECK_FALSE(recorded(tiny_loader(), model_of([&] {
                         torch::nn::Sequential frozen = linear(3)();
                         frozen->parameters().front().requires_grad_(false);
                         return frozen;
                       })));
  CHECK_FALSE(recorded(tiny_loader("", 10, 5), nothing));
  const at::Tensor wide = torch::zeros({10, 2, 4});
  LoaderOptions pairs;
  pairs.batch_size = 2;
  CHECK_FALSE(recorded(
      DataLoader(from_tensors({{"x", wide}, {"label", torch::zeros({10}, torch::kLong)}}), pairs),
      nothing));
}

TEST_CASE("the threads of a checkpoint go before those that would be found, and before a record") {
  const WithThreads as_before;
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
  CHECK_FALSE(recorded_threads(Trainer(options_in(dir, 0), quiet_log()),
                               tiny_loader()));  // nobody has timed them

  const TempDir other;
  Trainer(options_in(other, 0), quiet_log()).fit(tiny_loader());
  std::filesystem::copy_file(other / "threads.json",
                             dir / "threads.json",
                             std::filesystem::copy_options::overwrite_existing);
  set_record(dir, 1);
  CHECK(recorded_threads(Trainer(options_in(dir, 0), quiet_log()), tiny_loader()) == 1);
  fit_up_to(6, 0);
  CHECK(at::get_num_threads() == threads);
}

TEST_CASE("who ends the run does not end what is timed before") {
  const WithThreads as_before;
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

TEST_CASE("what goes wrong while updates are timed never ends the run") {
  const WithThreads as_before;
  const TempDir dir;
  TrainerOptions options = options_in(dir, 0);
  options.loop.max_steps = 1;
  SUBCASE("a loss that is not finite, after the run's own end") {
    options.optimizer = use<Sgd>({std::numeric_limits<double>::max()});
    options.checkpoint.require_finite = false;
  }
  SUBCASE("a callback that throws") {
    ProbeCallback::Options probe;
    probe.train_batch_start = [](Trainer& trainer, const Batch&) {
      if (trainer.state().global_step() > 0) {
        throw UsageError("this run has one update");
      }
    };
    options.callbacks.push_back(use<ProbeCallback>(probe));
  }
  std::vector<std::string> lines;
  Trainer trainer(options, quiet_log(&lines));
  CHECK(trainer.fit(tiny_loader()).steps == 1);
  CHECK(at::get_num_threads() == 1);
  CHECK_FALSE(recorded_threads(trainer, tiny_loader()));
  CHECK(std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
          return line.find("threads") != std::string::npos;
        }) == 1);
}

TEST_CASE("times that were taken before something went wrong are used") {
  const WithThreads as_before;
  const TempDir dir;
  ProbeCallback::Options probe;
  probe.train_batch_start = [](Trainer& trainer, const Batch&) {
    if (trainer.state().global_step() == 20) {
      throw NonFiniteLossError("planted");
    }
  };
  TrainerOptions options = options_in(dir, 0);
  options.callbacks.push_back(use<ProbeCallback>(probe));
  Trainer trainer(options, quiet_log());
  CHECK(trainer.fit(tiny_loader()).steps == 6);
  CHECK(recorded_threads(trainer, tiny_loader()) == at::get_num_threads());
}

TEST_CASE("a request to stop is heard while updates are timed, and the run ends as it would") {
  const WithThreads as_before;
  const TempDir dir;
  Trainer* run = nullptr;
  int batches = 0;
  ProbeCallback::Options probe;
  probe.train_batch_end = [&](Trainer& trainer) {
    if (&trainer != run && ++batches == 3) {
      run->request_stop("SIGTERM");
    }
  };
  TrainerOptions options = options_in(dir, 0);
  options.callbacks.push_back(use<ProbeCallback>(probe));
  Trainer trainer(options, quiet_log());
  run = &trainer;
  const FitResult stopped = trainer.fit(tiny_loader());
  CHECK(stopped.stop_reason == "SIGTERM");
  CHECK(stopped.steps == 0);
  CHECK(batches == 3);
  CHECK(at::get_num_threads() == 1);
  CHECK_FALSE(std::filesystem::exists(dir / "threads.json"));
  CHECK(trainer.fit(tiny_loader()).steps == 6);  // which finds the threads
  CHECK(recorded_threads(trainer, tiny_loader()));
}

TEST_CASE("updates are timed from what the run has loaded") {
  const WithThreads as_before;
  const TempDir dir;
  TrainerOptions first = options_in(dir, 1);
  first.checkpoint.steps = 6;
  Trainer(first, quiet_log()).fit(tiny_loader());
  std::vector<int64_t> begins;
  ProbeCallback::Options probe;
  probe.train_batch_start = [&](Trainer& trainer, const Batch&) {
    begins.push_back(trainer.state().global_step());
  };
  const TempDir other;
  bool is_own = false;
  SUBCASE("its own checkpoint") {
    is_own = true;
  }
  SUBCASE("a part of another run's") {}
  TrainerOptions options = options_in(is_own ? dir : other, 0);
  options.loop.max_steps = 9;
  options.callbacks.push_back(use<ProbeCallback>(probe));
  if (is_own) {
    options.backend.environment = "new";
  } else {
    options.checkpoint.load.path = dir / "checkpoint_6.pt";
    options.checkpoint.load.ignore = {"rng"};
  }
  Trainer(options, quiet_log()).fit(tiny_loader());
  CHECK(*std::min_element(begins.begin(), begins.end()) == 6);
  CHECK(begins.size() > 13);  // more than the run's own: some were timed
}

TEST_SUITE_END();
