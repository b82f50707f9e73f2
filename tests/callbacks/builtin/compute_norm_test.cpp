#include "callbacks/builtin/compute_norm.h"

#include <doctest/doctest.h>
#include <torch/nn/module.h>
#include <torch/types.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "core/error.h"
#include "models/builtin/mlp.h"
#include "support/probe_callback.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

TEST_SUITE_BEGIN("callbacks/builtin/compute_norm");

TEST_CASE("T122: the norms are those of a direct computation, also by layer") {
  std::map<std::string, double> of_first_update;
  for (const char* mode : {"eager", "traced"}) {
    CAPTURE(mode);
    const TempDir dir;
    std::vector<MemoryLogger::Entry> entries;
    MemoryLogger::Options memory;
    memory.entries = &entries;
    Mlp::Options model;
    model.sizes = {4, 5, 3};
    model.input = "x";
    double params = 0.0;
    double grads = 0.0;
    double second_layer = 0.0;
    ProbeCallback::Options probe;
    probe.train_batch_start = [&](Trainer& trainer, const Batch&) {
      params = 0.0;
      for (const at::Tensor& parameter : trainer.state().model->module().parameters()) {
        params += parameter.detach().square().sum().item<double>();
      }
    };
    probe.before_optimizer_step = [&](Trainer&, Optimizer& optimizer) {
      for (const Parameter& parameter : optimizer.groups()[0].params) {
        const double square = parameter.grad().square().sum().item<double>();
        grads += square;
        second_layer += parameter.name.rfind("layer1.", 0) == 0 ? square : 0.0;
      }
    };
    TrainerOptions options = tiny_options(dir / "run");
    options.model = use<Mlp>(model);
    options.loggers = {use<MemoryLogger>(memory)};
    options.callbacks = {use<ComputeNorm>()};
    options.precision.max_gradient_norm = 1e-3;  // clipping comes after the norms
    options.loop.grad_accum_steps = 2;
    if (std::string(mode) == "eager") {
      options.callbacks.push_back(use<ProbeCallback>(probe));
      options.loop.max_steps = 1;
    } else {
      options.loop.max_steps = 6;
    }
    options.backend.mode = mode;
    Trainer trainer(options, quiet_log());
    trainer.fit(tiny_loader("train"));
    if (std::string(mode) == "traced") {
      CHECK(values_of(entries, "model_wise_grad_norm").size() == 6);
      CHECK(values_of(entries, "model_wise_params_norm").size() == 6);
      // The first update is the other backend's, whose numbers were computed directly.
      for (const auto& [name, value] : of_first_update) {
        CHECK(values_of(entries, name.c_str()).at(0).second == value);
      }
      continue;
    }
    const auto last = [&](const char* name) {
      return of_first_update[name] = values_of(entries, name).at(0).second;
    };
    CHECK(last("model_wise_params_norm") == doctest::Approx(std::sqrt(params)));
    CHECK(last("model_wise_grad_norm") == doctest::Approx(std::sqrt(grads)));
    CHECK(last("per_layer_grad_norm/layer_1") == doctest::Approx(std::sqrt(second_layer)));
    CHECK(last("per_layer_grad_norm/layer_0") == doctest::Approx(std::sqrt(grads - second_layer)));
  }
}

TEST_CASE("a layer pattern needs one group") {
  CHECK_THROWS_AS(ComputeNorm({"layers"}), UsageError);
  CHECK_THROWS_AS(ComputeNorm({"layers.(\\d+"}), UsageError);
}

TEST_SUITE_END();
