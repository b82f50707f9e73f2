#include "callbacks/builtin/nan_policy.h"

#include <doctest/doctest.h>
#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/error.h"
#include "data/tensor_dataset.h"
#include "optim/adam.h"
#include "support/probe_callback.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// Ten samples in batches of two, of which the third batch makes every gradient NaN.
DataLoader with_bad_batch() {
  at::Tensor x = torch::linspace(-1, 1, 40).reshape({10, 4}).clone();
  x[4][0] = NAN;
  LoaderOptions batches;
  batches.batch_size = 2;
  return DataLoader(
      "train", from_tensors({{"x", x}, {"label", torch::arange(10).remainder(3)}}), batches);
}

NanPolicy::Options then(const std::string& what, int64_t most = 10) {
  NanPolicy::Options options;
  options.then = what;
  options.most = most;
  return options;
}

TrainerOptions run_with(const std::filesystem::path& run,
                        const std::string& mode,
                        const NanPolicy::Options& policy) {
  TrainerOptions options = tiny_options(run);
  options.backend.mode = mode;
  options.optimizer = use<Adam>({1e-2});
  options.callbacks = {use<NanPolicy>(policy)};
  options.loop.max_steps = 12;
  return options;
}

double sum_of_weights(Trainer& trainer) {
  double sum = 0.0;
  for (const at::Tensor& parameter : trainer.state().model->module().parameters()) {
    sum += parameter.detach().to(at::kDouble).sum().item<double>();
  }
  return sum;
}

}  // namespace

TEST_SUITE_BEGIN("callbacks/builtin/nan_policy");

TEST_CASE("skip leaves parameters and optimizer as they are, with the bits of both backends") {
  std::vector<double> sums;
  for (const char* mode : {"eager", "traced"}) {
    CAPTURE(mode);
    const TempDir dir;
    std::vector<std::string> lines;
    Trainer trainer(run_with(dir / "run", mode, then("skip")), quiet_log(&lines));
    CHECK(trainer.fit(with_bad_batch()).steps == 12);
    sums.push_back(sum_of_weights(trainer));
    CHECK(std::isfinite(sums.back()));
    CHECK(std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
            return line.find("skips an update") != std::string::npos;
          }) == 2);
  }
  CHECK(sums[0] == sums[1]);
}

TEST_CASE("an update that is skipped changes nothing") {
  const TempDir dir;
  std::vector<double> sums;
  TrainerOptions options = run_with(dir / "run", "eager", then("skip"));
  ProbeCallback::Options probe;
  probe.train_batch_end = [&](Trainer& trainer) { sums.push_back(sum_of_weights(trainer)); };
  options.callbacks.push_back(use<ProbeCallback>(probe));
  options.loop.max_steps = 4;
  Trainer(options, quiet_log()).fit(with_bad_batch());
  REQUIRE(sums.size() == 4);
  CHECK(sums[0] != sums[1]);
  CHECK(sums[1] == sums[2]);
  CHECK(sums[2] != sums[3]);
}

TEST_CASE("too many bad losses in a row, or another policy, end the run") {
  const TempDir dir;
  LoaderOptions batches;
  batches.batch_size = 2;
  const DataLoader bad(
      "train",
      from_tensors({{"x", torch::full({10, 4}, NAN)}, {"label", torch::zeros({10}, torch::kLong)}}),
      batches);
  CHECK_THROWS_AS(Trainer(run_with(dir / "a", "eager", then("skip", 3)), quiet_log()).fit(bad),
                  NonFiniteLossError);
  CHECK_THROWS_AS(Trainer(run_with(dir / "b", "eager", then("stop")), quiet_log()).fit(bad),
                  NonFiniteLossError);
  CHECK_THROWS_AS(Trainer(run_with(dir / "c", "eager", then("roll_back")), quiet_log()).fit(bad),
                  NonFiniteLossError);  // there is no checkpoint
  CHECK_THROWS_AS(NanPolicy(then("pray")), UsageError);
  CHECK_THROWS_AS(NanPolicy(then("skip", 0)), UsageError);
}

TEST_CASE("roll_back begins again from the newest checkpoint, at a lower rate that stays") {
  for (const char* mode : {"eager", "traced"}) {
    CAPTURE(mode);
    const TempDir dir;
    int bad = 0;
    std::vector<int64_t> starts;
    ProbeCallback::Options probe;
    probe.fit_start = [&](Trainer& trainer, const DataLoader&) {
      starts.push_back(trainer.state().global_step());
    };
    probe.train_batch_start = [&](Trainer& trainer, const Batch&) {
      if (trainer.state().global_step() == 7 && bad < 2) {
        ++bad;
        const torch::NoGradGuard no_grad;
        trainer.state().model->module().parameters()[0].fill_(NAN);
      }
    };
    TrainerOptions options = run_with(dir / "run", mode, then("roll_back"));
    options.callbacks.push_back(use<ProbeCallback>(probe));
    options.checkpoint.steps = 5;
    Trainer trainer(options, quiet_log());
    CHECK(trainer.fit(tiny_loader("train")).steps == 12);
    CHECK(starts == std::vector<int64_t>{0, 5, 5});
    CHECK(std::isfinite(sum_of_weights(trainer)));
    auto* const policy = trainer.callback<NanPolicy>();
    REQUIRE(policy != nullptr);
    CHECK(policy->captured_state().at(0).second.item<double>() == 0.25);
    CHECK(trainer.state().optimizer->groups()[0]["lr"].item<double>() == 1e-2);
    Trainer resumed(options, quiet_log());
    resumed.load_checkpoint({});
    CHECK(resumed.callback<NanPolicy>()->captured_state().at(0).second.item<double>() == 0.25);
  }
}

/// 64 equal samples in batches of two, but for the 26th batch, whose inputs are `factor` times as
/// large and whose labels are wrong.
DataLoader with_hard_batch(double factor) {
  at::Tensor x = torch::ones({64, 4});
  at::Tensor labels = torch::zeros({64}, torch::kLong);
  x.slice(0, 50, 52).mul_(factor);
  labels.slice(0, 50, 52).fill_(2);
  LoaderOptions batches;
  batches.batch_size = 2;
  return DataLoader("train", from_tensors({{"x", x}, {"label", labels}}), batches);
}

NanPolicy::Options with_spike(const std::string& what) {
  NanPolicy::Options options = then(what);
  options.spike = 3.0;
  return options;
}

TEST_CASE("a loss far above its moving mean is skipped within the step, with the bits of both") {
  std::vector<std::vector<double>> both;
  for (const char* mode : {"eager", "traced"}) {
    CAPTURE(mode);
    const TempDir dir;
    std::vector<std::string> lines;
    std::vector<double> sums;
    ProbeCallback::Options probe;
    probe.train_batch_end = [&](Trainer& trainer) { sums.push_back(sum_of_weights(trainer)); };
    TrainerOptions options = run_with(dir / "run", mode, with_spike("skip"));
    options.callbacks.push_back(use<ProbeCallback>(probe));
    options.loop.max_steps = 30;
    Trainer trainer(options, quiet_log(&lines));
    CHECK(trainer.fit(with_hard_batch(50.0)).steps == 30);
    REQUIRE(sums.size() == 30);
    CHECK(sums[25] == sums[24]);
    CHECK(sums[26] != sums[25]);
    CHECK(std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
            return line.find("more than 3 times the moving mean") != std::string::npos;
          }) == 1);
    both.push_back(sums);
  }
  CHECK(both[0] == both[1]);
}

TEST_CASE("without a spike the policy changes no bit") {
  for (const char* mode : {"eager", "traced"}) {
    std::vector<double> sums;
    for (const bool watches : {false, true}) {
      const TempDir dir;
      TrainerOptions options =
          run_with(dir / "run", mode, watches ? with_spike("skip") : then("skip"));
      options.loop.max_steps = 30;
      Trainer trainer(options, quiet_log());
      trainer.fit(with_hard_batch(0.5));
      sums.push_back(sum_of_weights(trainer));
    }
    CHECK(sums[0] == sums[1]);
  }
}

TEST_CASE("a spike ends the run, or rolls it back to where the mean was what the checkpoint says") {
  for (const char* mode : {"eager", "traced"}) {
    CAPTURE(mode);
    const TempDir dir;
    TrainerOptions stopping = run_with(dir / "stop", mode, with_spike("stop"));
    stopping.loop.max_steps = 30;
    Trainer stopped(stopping, quiet_log());
    try {
      stopped.fit(with_hard_batch(50.0));
      FAIL("the run went on");
    } catch (const NonFiniteLossError& error) {
      CHECK(std::string(error.what()).find("the loss of update 26 is") == 0);
    }
    TrainerOptions rolling = run_with(dir / "roll", mode, with_spike("roll_back"));
    std::vector<int64_t> starts;
    ProbeCallback::Options probe;
    probe.fit_start = [&](Trainer& trainer, const DataLoader&) {
      starts.push_back(trainer.state().global_step());
      NanPolicy& policy = *trainer.callback<NanPolicy>();
      CHECK(policy.captured_state().at(3).second.item<double>() == starts.back());
    };
    rolling.callbacks = {use<NanPolicy>(with_spike("roll_back")), use<ProbeCallback>(probe)};
    rolling.loop.max_steps = 30;
    rolling.checkpoint.steps = 10;
    Trainer rolled(rolling, quiet_log());
    CHECK_THROWS_AS(rolled.fit(with_hard_batch(50.0)), NonFiniteLossError);  // it comes each time
    CHECK(starts.size() == 11);
    CHECK(starts.back() == 20);
  }
  NanPolicy::Options low;
  low.spike = 1.0;
  CHECK_THROWS_AS(NanPolicy{low}, UsageError);
}

TEST_SUITE_END();
