#include "callbacks/builtin/gradient_noise_scale.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "support/probe_callback.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

double squared_norm(const Optimizer& optimizer) {
  double sum = 0.0;
  for (const at::Tensor& grad : optimizer.grads()) {
    sum += grad.pow(2).sum().item<double>();
  }
  return sum;
}

}  // namespace

TEST_SUITE_BEGIN("callbacks/builtin/gradient_noise_scale");

TEST_CASE("the noise scale is that of the paper's formula, from a batch and its group") {
  for (const char* mode : {"eager", "traced"}) {
    CAPTURE(mode);
    const TempDir dir;
    std::vector<double> first;
    std::vector<double> group;
    ProbeCallback::Options probe;
    probe.after_backward = [&](Trainer& trainer, const Outputs&) {
      if (trainer.state().position.is_first && !trainer.state().backend->is_capturing()) {
        first.push_back(squared_norm(*trainer.state().optimizer) * 9.0);  // it was divided by 3
      }
    };
    probe.before_optimizer_step = [&](Trainer& trainer, Optimizer& optimizer) {
      if (!trainer.state().backend->is_capturing()) {
        group.push_back(squared_norm(optimizer));
      }
    };
    std::vector<MemoryLogger::Entry> entries;
    MemoryLogger::Options memory;
    memory.entries = &entries;
    TrainerOptions options = tiny_options(dir / "run");
    options.backend.mode = mode;
    options.callbacks = {use<GradientNoiseScale>({0.5})};
    if (std::string(mode) == "eager") {
      options.callbacks.push_back(use<ProbeCallback>(probe));
    }
    options.loggers = {use<MemoryLogger>(memory)};
    options.logging.log_steps = int64_t{1};
    options.loop.grad_accum_steps = 3;
    options.loop.max_steps = 5;
    Trainer(options, quiet_log()).fit(tiny_loader("train", 12, 2));
    const auto logged = values_of(entries, "gradient_noise_scale");
    REQUIRE(logged.size() == 5);
    double signal = 0.0;
    double noise = 0.0;
    for (size_t i = 0; i < group.size(); ++i) {
      signal = 0.5 * signal + 0.5 * (6.0 * group[i] - 2.0 * first[i]) / (6.0 - 2.0);
      noise = 0.5 * noise + 0.5 * (first[i] - group[i]) / (1.0 / 2.0 - 1.0 / 6.0);
      CHECK(logged[i].second == doctest::Approx(noise / signal).epsilon(1e-3));
    }
  }
}

TEST_CASE("without several batches in an update there is a warning") {
  const TempDir dir;
  std::vector<std::string> warnings;
  TrainerOptions options = tiny_options(dir / "run");
  options.callbacks = {use<GradientNoiseScale>()};
  options.loop.max_steps = 1;
  Trainer(options, quiet_log(&warnings)).fit(tiny_loader("train"));
  REQUIRE(warnings.size() == 2);  // the other one: no logger
  CHECK(warnings[0].find("grad_accum_steps") != std::string::npos);
}

TEST_SUITE_END();
