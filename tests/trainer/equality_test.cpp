#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/registry.h"
#include "data/tensor_dataset.h"
#include "models/losses/register.h"
#include "models/models.h"
#include "models/register.h"
#include "optim/adam.h"
#include "optim/sgd.h"
#include "support/every_model.h"
#include "support/every_optimizer.h"
#include "support/generated_data.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

constexpr int64_t kEqualityUpdates = 50;

RegisteredOptimizer sgd_with_momentum() {
  Sgd::Options options;
  options.lr = 0.05;
  options.momentum = 0.9;
  return {"SGD with momentum", "", use<Sgd>(options)};
}

RegisteredOptimizer adamw() {
  return {"AdamW", "", use<AdamW>({1e-3})};
}

struct Case {
  const ModelOnData* subject;
  RegisteredOptimizer optimizer;
  int64_t accumulation;
  bool dropout;
  bool clipping;
  std::string dtype = "fp32";
};

/// Traced equals eager for this model on batches of this data, and no step ran as written.
void check_run_equal(const Factory<Model>& model, const Factory<DataSource>& data) {
  const auto trained = [&](const std::string& mode) {
    const TempDir dir;
    TrainerOptions options;
    options.model_dir = dir / "run";
    options.seed = 3;
    options.model = model;
    options.optimizer = adamw().factory;
    options.backend.mode = mode;
    options.backend.on_refusal = "error";
    options.loop.max_steps = kEqualityUpdates / 5;
    LoaderOptions batches;
    batches.batch_size = 3;
    batches.shuffle = true;
    options.loop.eval_frequency = int64_t{5};
    Trainer trainer(options, quiet_log());
    trainer.fit(DataLoader("train", data, batches), {DataLoader("val", data, batches)});
    return bits_of(trainer);
  };
  CHECK(first_difference(trained("eager"), trained("traced")) == "");
}

StateDict trained(const Case& c, const std::string& mode) {
  const TempDir dir;
  TrainerOptions options;
  options.model_dir = dir / "run";
  options.seed = 3;
  options.model = c.subject->model(c.dropout ? 0.2 : 0.0);
  options.optimizer = c.optimizer.factory;
  options.backend.mode = mode;
  options.precision.dtype = c.dtype;
  options.precision.on_unsupported = "emulate";
  options.loop.max_steps = kEqualityUpdates;
  options.loop.grad_accum_steps = c.accumulation;
  if (c.clipping) {
    options.precision.max_gradient_norm = 0.5;
  }
  LoaderOptions batches;
  batches.batch_size = 3;
  batches.shuffle = true;
  Trainer trainer(options, quiet_log());
  trainer.fit(DataLoader("train", c.subject->data(), batches));
  return bits_of(trainer);
}

void check_equal(const Case& c) {
  CAPTURE(c.subject->name);
  CAPTURE(c.optimizer.name);
  CAPTURE(c.optimizer.keys);
  CAPTURE(c.accumulation);
  CAPTURE(c.dropout);
  CAPTURE(c.clipping);
  CAPTURE(c.dtype);
  CHECK(first_difference(trained(c, "eager"), trained(c, "traced")) == "");
}

}  // namespace

TEST_SUITE_BEGIN("trainer/equality");

TEST_CASE("T75: 50 traced updates equal 50 eager ones, bit for bit, for every model and setting") {
  for (const ModelOnData& subject : every_model()) {
    if (!subject.is_basic) {
      continue;
    }
    for (const RegisteredOptimizer& optimizer : {sgd_with_momentum(), adamw()}) {
      for (const int64_t accumulation : {1, 3}) {
        for (const bool dropout : {false, true}) {
          for (const bool clipping : {false, true}) {
            check_equal({&subject, optimizer, accumulation, dropout, clipping});
          }
        }
      }
    }
  }
}

TEST_CASE("T75: 50 traced updates equal 50 eager ones, bit for bit, for the other models") {
  for (const ModelOnData& subject : every_model()) {
    if (!subject.is_basic) {
      check_equal({&subject, adamw(), 1, true, false});
      check_equal({&subject, sgd_with_momentum(), 3, false, true});
    }
  }
}

TEST_CASE("every model is recorded, and its validations too") {
  for (const ModelOnData& subject : every_model()) {
    CAPTURE(subject.name);
    check_run_equal(subject.model(0.2), subject.data());
  }
}

TEST_CASE("T75: 50 traced updates equal 50 eager ones, bit for bit, for every optimizer") {
  for (const RegisteredOptimizer& optimizer : every_optimizer()) {
    check_equal({&every_model().front(), optimizer, 1, false, false});
    check_equal({&every_model().front(), optimizer, 3, true, true});
  }
}

TEST_CASE("traced equals eager for every loss that a config can name") {
  Registry<Criterion> losses("loss");
  register_builtin_losses(losses);
  for (const auto& entry : losses.entries()) {
    CAPTURE(entry.name);
    std::vector<Fault> faults;
    FaultSink sink("", faults);
    const Factory<Criterion> loss = losses.read_named(entry.name, {}, {}, sink);
    REQUIRE(faults.empty());
    const auto made = loss.make();
    Mlp::Options options;
    options.sizes = {64, 16, made->outputs_per_value() > 1 ? made->outputs_per_value() : 10};
    options.loss = loss;
    at::Tensor target = integers({12}, 10, 3);
    if (made->outputs_per_value() > 1) {
      target = uniform({12});
    } else if (made->targets() != Criterion::Targets::Classes) {
      target = uniform({12, 10}).softmax(1);
    }
    const Factory<DataSource> data =
        from_tensors({{"image", uniform({12, 1, 8, 8})}, {"label", target}});
    check_run_equal(use<Mlp>(options), data);
  }
}

TEST_CASE("traced equals eager for losses with all their options") {
  CrossEntropyLoss::Options entropy;
  entropy.label_smoothing = 0.1;
  entropy.class_weights = {1, 2, 1, 3, 1, 1, 0.5, 1, 1, 2};
  entropy.ignore_index = 4;
  FocalLoss::Options focal;
  focal.alpha = entropy.class_weights;
  focal.ignore_index = 4;
  for (const Factory<Criterion>& loss : {use<CrossEntropyLoss>(entropy), use<FocalLoss>(focal)}) {
    CAPTURE(loss.name());
    Mlp::Options options;
    options.sizes = {64, 16, 10};
    options.loss = loss;
    check_run_equal(use<Mlp>(options), images(1, 8));
  }
  Mlp::Options options;
  options.sizes = {64, 16, 3};
  options.loss = use<BinaryCrossEntropyLoss>({{2.0, 1.0, 0.5}});
  check_run_equal(use<Mlp>(options),
                  from_tensors({{"image", uniform({12, 1, 8, 8})}, {"label", uniform({12, 3})}}));
}

TEST_CASE("every model that a config can name is among those that are compared") {
  Registry<Criterion> losses("loss");
  register_builtin_losses(losses);
  Registry<Model> registry("model");
  register_builtin_models(registry, losses);
  for (const auto& entry : registry.entries()) {
    CAPTURE(entry.name);
    CHECK(std::any_of(every_model().begin(), every_model().end(), [&](const ModelOnData& subject) {
      return subject.name == entry.name;
    }));
  }
}

TEST_CASE("traced equals eager in every precision, for every model") {
  for (const ModelOnData& subject : every_model()) {
    // LibTorch 1.13 has no transposed convolution in bfloat16 on CPUs.
    const bool has_transposed = subject.name == "UNet" || subject.name == "Diffusion";
    for (const char* dtype : {"fp64", "bf16", "fp16", "bf16_pure"}) {
      if (!has_transposed || dtype != std::string("bf16_pure")) {
        check_equal({&subject, adamw(), 3, true, true, dtype});
      }
    }
  }
}

TEST_SUITE_END();
