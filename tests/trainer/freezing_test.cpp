#include <doctest/doctest.h>

#include <ATen/Parallel.h>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "models/from_module.h"
#include "models/module_model.h"
#include "optim/adam.h"
#include "support/probe_callback.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

using namespace rondo;
using namespace rondo::test;

namespace nn = torch::nn;

TEST_SUITE_BEGIN("trainer/freezing");

namespace {

/// Linear, batch norm, linear under AdamW.
TrainerOptions options_of(const TempDir& dir, const std::string& mode, int64_t accumulated) {
  TrainerOptions options = tiny_options(dir / mode.c_str());
  options.model = from_module(
      [] { return nn::Sequential(nn::Linear(4, 6), nn::BatchNorm1d(6), nn::Linear(6, 3)); },
      "x",
      cross_entropy("label"));
  options.optimizer = use<AdamW>({1e-2});
  options.backend.mode = mode;
  options.loop.grad_accum_steps = accumulated;
  options.loop.max_steps = 50;
  options.loop.eval_frequency = 0;
  return options;
}

DataLoader data() {
  LoaderOptions batches;
  batches.batch_size = 4;
  batches.drop_last = true;
  return tiny_loader("train", 24, batches);
}

/// A layer that may be given another one in its place.
struct Swapped final : ModuleModel {
  Swapped() { register_module("layer", layer); }

  void swap() {
    layer = nn::Linear(4, 3);
    const at::NoGradGuard no_grad;
    layer->weight.fill_(0.25);
    layer->bias.zero_();
    replace_module("layer", layer);
  }

  Outputs forward(const Batch& batch) override {
    const at::Tensor logits = layer(batch["x"]);
    return {{"loss", nn::functional::cross_entropy(logits, batch["label"])}, {"logits", logits}};
  }

  nn::Linear layer{4, 3};
};

/// The loss of a layer, and one that reaches a single parameter.
struct TwoPaths final : ModuleModel {
  TwoPaths() { register_module("in", in); }

  Outputs forward(const Batch& batch) override {
    const at::Tensor logits = in(batch["x"]);
    return {{"loss", nn::functional::cross_entropy(logits, batch["label"])},
            {"logits", logits},
            {"bias_loss", bias.square().sum()}};
  }

  nn::Linear in{4, 3};
  at::Tensor bias = register_parameter("bias", torch::ones({3}));
};

/// Scales the inputs with a batch norm of its own.
struct ScalesInputs final : Callback {
  struct Options {
    ScalesInputs** self;  // is told where it is
  };

  explicit ScalesInputs(const Options& options) { *options.self = this; }

  void on_before_forward(Trainer&, Model&, const Batch&, Batch& input) override {
    input.set("x", norm(input["x"]).detach());
  }

  std::vector<const nn::Module*> captured_modules() const override { return {norm.ptr().get()}; }

  NamedTensors captured_state() override {
    return {{"mean", norm->running_mean},
            {"variance", norm->running_var},
            {"batches", norm->num_batches_tracked},
            {"weight", norm->weight.detach()},
            {"bias", norm->bias.detach()}};
  }

  nn::BatchNorm1d norm{4};
};

/// The first module of this type in a model.
template <class Impl>
Impl& part(Trainer& trainer) {
  for (const auto& module : trainer.state().model->module().modules()) {
    if (auto* found = module->as<Impl>()) {
      return *found;
    }
  }
  throw std::logic_error("the model has no such module");
}

/// What is done after which update, on the host.
using Schedule = std::map<int64_t, std::function<void(Trainer&)>>;

struct Run {
  StateDict bits;
  std::vector<StateDict> optimizer;  // after each update
  int64_t replays = 0;
};

Run run(const std::string& mode, const Schedule& schedule, int64_t accumulated = 1) {
  const TempDir dir;
  Run result;
  TrainerOptions options = options_of(dir, mode, accumulated);
  ProbeCallback::Options probe;
  probe.train_batch_end = [&](Trainer& trainer) {
    if (!trainer.state().position.is_last) {
      return;
    }
    result.optimizer.push_back(deep_copy(trainer.state().optimizer->state_dict()));
    const auto due = schedule.find(trainer.state().global_step());
    if (due != schedule.end()) {
      due->second(trainer);
    }
  };
  options.callbacks = {use<ProbeCallback>(probe)};
  Trainer trainer(options, quiet_log());
  trainer.fit(data());
  result.bits = bits_of(trainer);
  for (const StepReport& report : trainer.state().backend->reports()) {
    result.replays += report.stats.replays;
  }
  return result;
}

void freeze(Trainer& trainer, bool frozen) {
  part<nn::LinearImpl>(trainer).weight.requires_grad_(!frozen);
  part<nn::LinearImpl>(trainer).bias.requires_grad_(!frozen);
  part<nn::BatchNorm1dImpl>(trainer).train(!frozen);
}

const Schedule kFreezes = {{20, [](Trainer& trainer) { freeze(trainer, true); }},
                           {30, [](Trainer& trainer) { freeze(trainer, false); }},
                           {35, [](Trainer& trainer) { freeze(trainer, true); }},
                           {40, [](Trainer& trainer) { freeze(trainer, false); }}};

}  // namespace

TEST_CASE("layers that are frozen and trained again on a schedule: traced equals eager") {
  for (const int64_t accumulated : {1, 3}) {
    CAPTURE(accumulated);
    const Run eager = run("eager", kFreezes, accumulated);
    const Run traced = run("traced", kFreezes, accumulated);
    CHECK(first_difference(eager.bits, traced.bits) == "");
    // Each of the phases is captured twice when all is trained and twice when a part is; none
    // again.
    const int64_t phases = std::min<int64_t>(accumulated, 3);
    CHECK(traced.replays == 50 * accumulated - 2 * 2 * phases);
  }
}

TEST_CASE("what is frozen stays as it is, with what the optimizer keeps for it") {
  for (const int64_t accumulated : {1, 2}) {
    CAPTURE(accumulated);
    at::Tensor weight;
    at::Tensor mean;
    const auto look = [&](Trainer& trainer) {
      weight = part<nn::LinearImpl>(trainer).weight.detach().clone();
      mean = part<nn::BatchNorm1dImpl>(trainer).running_mean.clone();
    };
    const Run traced =
        run("traced",
            {{20,
              [&](Trainer& trainer) {
                freeze(trainer, true);
                look(trainer);
              }},
             {30,
              [&](Trainer& trainer) {
                CHECK(equal_bytes(part<nn::LinearImpl>(trainer).weight.detach(), weight));
                CHECK(equal_bytes(part<nn::BatchNorm1dImpl>(trainer).running_mean, mean));
                freeze(trainer, false);
              }},
             {31,
              [&](Trainer& trainer) {
                CHECK_FALSE(equal_bytes(part<nn::LinearImpl>(trainer).weight.detach(), weight));
                CHECK_FALSE(equal_bytes(part<nn::BatchNorm1dImpl>(trainer).running_mean, mean));
              }}},
            accumulated);
    const auto kept = [&](size_t update, const char* parameter) {
      for (const StateDict::Item& item :
           traced.optimizer.at(update - 1).at("state").as_dict().items()) {
        if (item.first.find(parameter) != std::string::npos) {
          return item.second.as_dict();
        }
      }
      return StateDict{};
    };
    CHECK(first_difference(kept(20, "0.weight"), kept(30, "0.weight")) == "");
    CHECK(first_difference(kept(30, "0.weight"), kept(31, "0.weight")) != "");
    CHECK(first_difference(kept(29, "2.weight"), kept(30, "2.weight")) != "");
  }
}

TEST_CASE("a learning rate is changed between steps by writing the group's number") {
  const Schedule schedule = {
      {10, [](Trainer& trainer) { trainer.state().optimizer->groups()[0]["lr"].fill_(0.5); }},
      // Another tensor in its place is seen as well.
      {20, [](Trainer& trainer) {
         trainer.state().optimizer->groups()[0]["lr"] = torch::tensor(0.001, torch::kDouble);
       }}};
  const Run eager = run("eager", schedule);
  const Run traced = run("traced", schedule);
  CHECK(first_difference(eager.bits, traced.bits) == "");
  CHECK(first_difference(eager.bits, run("traced", {}).bits) != "");
  CHECK(traced.replays == 50 - 4);
  CHECK(traced.optimizer.back().at("groups").as_list()[0].as_dict().at("lr").as_double() == 0.001);
}

TEST_CASE("a module that is replaced between two steps is the one that is used") {
  const auto run_with_swap = [](const std::string& mode) {
    const TempDir dir;
    TrainerOptions options = options_of(dir, mode, 1);
    options.model = use<Swapped>();
    options.backend.on_refusal = "eager";  // nobody trains the new module: its gradient stays
    options.loop.max_steps = 20;
    ProbeCallback::Options probe;
    probe.train_batch_end = [](Trainer& trainer) {
      if (trainer.state().global_step() == 10) {
        dynamic_cast<Swapped&>(*trainer.state().model).swap();
      }
    };
    options.callbacks = {use<ProbeCallback>(probe)};
    Trainer trainer(options, quiet_log());
    trainer.fit(data());
    return bits_of(trainer);
  };
  CHECK(first_difference(run_with_swap("eager"), run_with_swap("traced")) == "");
}

TEST_CASE("a module that a callback holds is used in the mode that it is in") {
  const auto run_with_module = [](const std::string& mode, bool changes) {
    const TempDir dir;
    TrainerOptions options = options_of(dir, mode, 1);
    options.loop.max_steps = 20;
    ScalesInputs* scales = nullptr;
    ProbeCallback::Options probe;
    probe.train_batch_end = [&](Trainer& trainer) {
      if (changes && trainer.state().global_step() == 10) {
        scales->norm->eval();
      }
    };
    options.callbacks = {use<ScalesInputs>({&scales}), use<ProbeCallback>(probe)};
    Trainer trainer(options, quiet_log());
    trainer.fit(data());
    CHECK((scales->norm->num_batches_tracked.item<int64_t>() == 10) == changes);
    return bits_of(trainer);
  };
  const StateDict traced = run_with_module("traced", true);
  CHECK(first_difference(run_with_module("eager", true), traced) == "");
  CHECK(first_difference(run_with_module("traced", false), traced) != "");
}

TEST_CASE("a step under another number of threads is recorded under it") {
  const int before = at::get_num_threads();
  const Run traced = run("traced",
                         {{10, [](Trainer&) { at::set_num_threads(3); }},
                          {20, [=](Trainer&) { at::set_num_threads(before); }}});
  at::set_num_threads(before);
  CHECK(traced.replays == 50 - 4);
}

TEST_CASE("a parameter that a backward does not reach gets no gradient of an earlier group") {
  // The first layer is reached in the first two groups only.
  const auto run_to = [](int64_t updates) {
    const TempDir dir;
    TrainerOptions options = options_of(dir, "eager", 2);
    options.optimizer = use<Adam>({1e-2});
    options.loop.max_steps = updates;
    ProbeCallback::Options probe;
    probe.after_forward = [groups = 0](Outputs& outputs) mutable {
      if (groups++ >= 4) {
        outputs.set("loss", outputs["logits"].detach().sum() * 0 + outputs["bias_loss"]);
      }
    };
    options.model = use<TwoPaths>();
    options.callbacks = {use<ProbeCallback>(probe)};
    Trainer trainer(options, quiet_log());
    trainer.fit(data());
    return dynamic_cast<TwoPaths&>(*trainer.state().model).in->weight.detach().clone();
  };
  CHECK(equal_bytes(run_to(2), run_to(6)));
}

TEST_SUITE_END();
