#include <doctest/doctest.h>
#include <torch/nn/module.h>
#include <torch/types.h>

#include <algorithm>
#include <exception>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/random.h"
#include "data/tensor_dataset.h"
#include "loops/message_of_setup.h"
#include "models/builtin/mlp.h"
#include "models/losses/class_losses.h"
#include "models/model_state.h"
#include "optim/adam.h"
#include "optim/sgd.h"
#include "support/contains.h"
#include "support/probe_callback.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

struct Groups {
  int64_t batch_size = 2;
  int64_t accumulation = 1;
  int64_t micro_batch = 0;
  bool on_tokens = false;
  const char* mode = "eager";
};

TrainerOptions options_of(const std::filesystem::path& model_dir, const Groups& g) {
  TrainerOptions options = tiny_options(model_dir);
  options.backend.mode = g.mode;
  options.loop.eval_frequency = 0;
  options.loop.grad_accum_steps = g.accumulation;
  options.loop.accumulate_on_tokens = g.on_tokens;
  if (g.micro_batch > 0) {
    options.loop.device_train_microbatch_size = g.micro_batch;
  }
  return options;
}

at::Tensor weight_after(const Groups& g, const DataLoader& loader, int64_t updates) {
  const TempDir dir;
  TrainerOptions options = options_of(dir / "run", g);
  options.loop.max_steps = updates;
  Trainer trainer(options, quiet_log());
  trainer.fit(loader);
  return trainer.state().model->module().parameters()[0].detach().clone();
}

double difference(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

StateDict bits_after(const std::filesystem::path& model_dir,
                     const Groups& g,
                     const DataLoader& loader,
                     int64_t updates) {
  TrainerOptions options = options_of(model_dir, g);
  options.optimizer = use<Adam>({1e-2});
  options.loop.max_steps = updates;
  Trainer trainer(options, quiet_log());
  trainer.fit(loader);
  return bits_of(trainer);
}

/// 8 samples, of whose labels 1, 0, 2 and 0 in each batch of 2 do not count.
DataLoader masked(int64_t batch_size) {
  KeyedRandom random(4);
  at::Tensor x = at::empty({8, 4});
  for (int64_t i = 0; i < x.numel(); ++i) {
    x.data_ptr<float>()[i] = static_cast<float>(random.normal());
  }
  LoaderOptions batches;
  batches.batch_size = batch_size;
  const at::Tensor label = torch::tensor({0, -100, 1, 2, 2, 0, -100, 1}, torch::kLong);
  return DataLoader("train", from_tensors({{"x", x}, {"label", label}}), batches);
}

}  // namespace

TEST_SUITE_BEGIN("loops/micro_batches");

TEST_CASE("ruling 39: a group whose last batch is short equals one large batch") {
  const at::Tensor whole = weight_after({5}, tiny_loader("train", 5, 5), 3);
  const at::Tensor ragged = weight_after({2, 3}, tiny_loader("train", 5, 2), 3);
  CHECK(difference(whole, ragged) < 1e-6);
  CHECK(difference(whole, weight_after({2, 3, 0, false, "traced"}, tiny_loader("train", 5, 2), 3)) <
        1e-6);
}

TEST_CASE("C39, P1: a batch that is cut into micro-batches equals the batch") {
  const at::Tensor whole = weight_after({5}, tiny_loader("train", 10, 5), 4);
  for (const int64_t micro_batch : {1, 2, 3, 5, 8}) {
    CAPTURE(micro_batch);
    for (const char* mode : {"eager", "traced"}) {
      CAPTURE(mode);
      CHECK(difference(
                whole,
                weight_after({5, 1, micro_batch, false, mode}, tiny_loader("train", 10, 5), 4)) <
            1e-6);
    }
  }
}

TEST_CASE("micro-batches have the bits of accumulated batches of their size") {
  const TempDir dir;
  CHECK(at::equal(weight_after({6, 1, 2}, tiny_loader("train", 12, 6), 4),
                  weight_after({2, 3}, tiny_loader("train", 12, 2), 4)));
}

TEST_CASE("an update is a group of loader batches, whatever they are cut into") {
  const TempDir dir;
  std::vector<int64_t> sizes;
  ProbeCallback::Options probe;
  probe.train_batch_start = [&](Trainer&, const Batch& batch) { sizes.push_back(batch.size()); };
  TrainerOptions options = options_of(dir / "run", {5, 2, 3});
  options.callbacks = {use<ProbeCallback>(probe)};
  options.loop.num_epochs = 1;
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train", 20, 5));
  CHECK(sizes == std::vector<int64_t>{3, 2, 3, 2, 3, 2, 3, 2});
  CHECK(trainer.state().global_step() == 2);
  CHECK(trainer.state().timestamp.sample == 20);
}

TEST_CASE("weighted groups: traced equals eager, and resumed unstopped, bit for bit") {
  for (const Groups& g : {Groups{2, 3}, Groups{5, 2, 2}, Groups{3, 1, 2}}) {
    CAPTURE(g.accumulation);
    CAPTURE(g.micro_batch);
    const TempDir dir;
    const DataLoader loader = tiny_loader("train", 13, g.batch_size);
    Groups traced = g;
    traced.mode = "traced";
    const StateDict eager = bits_after(dir / "eager", g, loader, 14);
    CHECK(first_difference(eager, bits_after(dir / "traced", traced, loader, 14)) == "");
    bits_after(dir / "resumed", traced, loader, 5);
    CHECK(first_difference(eager, bits_after(dir / "resumed", traced, loader, 14)) == "");
  }
}

TEST_CASE("the logged loss of a weighted group is the mean over its samples") {
  const auto losses = [](const Groups& g, const DataLoader& loader) {
    const TempDir dir;
    std::vector<MemoryLogger::Entry> entries;
    MemoryLogger::Options memory;
    memory.entries = &entries;
    TrainerOptions options = options_of(dir / "run", g);
    options.loggers = {use<MemoryLogger>(memory)};
    options.logging.log_steps = int64_t{1};
    options.loop.max_steps = 3;
    Trainer(options, quiet_log()).fit(loader);
    return values_of(entries, "loss");
  };
  const auto whole = losses({5}, tiny_loader("train", 5, 5));
  const auto cut = losses({5, 1, 2, false, "traced"}, tiny_loader("train", 5, 5));
  REQUIRE(whole.size() == cut.size());
  for (size_t i = 0; i < whole.size(); ++i) {
    CHECK(cut[i].second == doctest::Approx(whole[i].second));
  }
}

TEST_CASE("accumulate_on_tokens weights by the labels that count") {
  const at::Tensor whole = weight_after({8}, masked(8), 3);
  CHECK(difference(whole, weight_after({2, 4, 0, true}, masked(2), 3)) < 1e-6);
  CHECK(difference(whole, weight_after({8, 1, 3, true, "traced"}, masked(8), 3)) < 1e-6);
  CHECK(difference(whole, weight_after({2, 4, 0, false}, masked(2), 3)) > 1e-3);
}

TEST_CASE("accumulate_on_tokens refuses a loss whose mean is over other labels") {
  const auto message_of = [](const CrossEntropyLoss::Options& loss, bool on_tokens) {
    const TempDir dir;
    TrainerOptions options = options_of(dir / "run", {2, 2, 0, on_tokens});
    options.loop.max_steps = 1;
    Mlp::Options mlp;
    mlp.sizes = {4, 3};
    mlp.input = "x";
    mlp.loss = use<CrossEntropyLoss>(loss);
    options.model = use<Mlp>(mlp);
    Trainer trainer(options, quiet_log());
    try {
      trainer.fit(tiny_loader("train"));
    } catch (const Error&) {
      return describe(std::current_exception());
    }
    return std::string();
  };
  CrossEntropyLoss::Options ignoring;
  ignoring.ignore_index = 1;
  CHECK(message_of(ignoring, true).find("leaves out label 1") != std::string::npos);
  CHECK(message_of(ignoring, false) == "");
  CrossEntropyLoss::Options weighing;
  weighing.class_weights = {1.0, 2.0, 3.0};
  CHECK(message_of(weighing, true).find("class_weights") != std::string::npos);
  CHECK(message_of({}, true) == "");
}

TEST_CASE("train_subset_num_batches ends a pass early") {
  for (const char* mode : {"eager", "traced"}) {
    CAPTURE(mode);
    const TempDir dir;
    const auto run = [&](const char* name, int64_t epochs, std::vector<double>* firsts) {
      ProbeCallback::Options probe;
      probe.train_batch_start = [firsts](Trainer&, const Batch& batch) {
        if (firsts != nullptr) {
          firsts->push_back(batch["x"][0][0].item<double>());
        }
      };
      TrainerOptions options = options_of(dir / name, {2, 2, 0, false, mode});
      options.callbacks = {use<ProbeCallback>(probe)};
      options.loop.num_epochs = epochs;
      options.loop.train_subset_num_batches = 3;
      Trainer trainer(options, quiet_log());
      trainer.fit(tiny_loader("train", 12, 2));
      CHECK(trainer.state().timestamp.epoch == epochs);
      CHECK(trainer.state().timestamp.batch == 3 * epochs);
      CHECK(trainer.state().global_step() == 2 * epochs);
      return bits_of(trainer);
    };
    std::vector<double> firsts;
    const StateDict whole = run("whole", 4, &firsts);
    CHECK(std::vector<double>(firsts.begin(), firsts.begin() + 3) ==
          std::vector<double>(firsts.begin() + 3, firsts.begin() + 6));
    run("stopped", 2, nullptr);
    CHECK(first_difference(whole, run("stopped", 4, nullptr)) == "");
  }
}

TEST_CASE("C73: max_gradient_ratio and clip_by_group clip as their formulas say") {
  const TempDir dir;
  std::vector<at::Tensor> before;
  std::vector<at::Tensor> after;
  std::vector<at::Tensor> weights;
  ProbeCallback::Options probe;
  probe.before_optimizer_step = [&](Trainer&, Optimizer& optimizer) {
    for (const NamedTensor& parameter : optimizer.trained()) {
      before.push_back(parameter.second.grad().clone());
      weights.push_back(parameter.second.detach().clone());
    }
  };
  probe.after_optimizer_step = [&](Trainer&, Optimizer& optimizer) {
    for (const at::Tensor& grad : optimizer.grads()) {
      after.push_back(grad.clone());
    }
  };
  TrainerOptions options = options_of(dir / "agc", {});
  options.callbacks = {use<ProbeCallback>(probe)};
  options.precision.max_gradient_ratio = 0.05;
  options.loop.max_steps = 1;
  Trainer(options, quiet_log()).fit(tiny_loader("train"));
  for (int64_t row = 0; row < 3; ++row) {
    const double most = 0.05 * std::max(weights[0][row].norm().item<double>(), 1e-3);
    const double norm = before[0][row].norm().item<double>();
    CHECK(difference(after[0][row], before[0][row] * std::min(1.0, most / norm)) < 1e-6);
  }
  const double most = 0.05 * std::max(weights[1].norm().item<double>(), 1e-3);
  CHECK(difference(after[1], before[1] * std::min(1.0, most / before[1].norm().item<double>())) <
        1e-6);

  before.clear();
  after.clear();
  TrainerOptions grouped = options_of(dir / "group", {});
  grouped.callbacks = {use<ProbeCallback>(probe)};
  Sgd::Options sgd;
  sgd.lr = 0.1;
  sgd.params = {{{"*bias"}, "bias", {}}};
  grouped.optimizer = use<Sgd>(sgd);
  grouped.precision.max_gradient_norm = 1e-2;
  grouped.precision.clip_by_group = true;
  grouped.loop.max_steps = 1;
  Trainer(grouped, quiet_log()).fit(tiny_loader("train"));
  for (const at::Tensor& grad : after) {
    CHECK(grad.norm().item<double>() == doctest::Approx(1e-2).epsilon(1e-3));
  }
}

TEST_CASE("clippings that exclude each other are an error that names them") {
  const TempDir dir;
  TrainerOptions options = options_of(dir / "run", {});
  options.precision.max_gradient_ratio = 0.1;
  options.precision.max_gradient_value = 0.1;
  CHECK(contains(message_of_setup(options), "max_gradient_value and max_gradient_ratio"));
  TrainerOptions group = options_of(dir / "run", {});
  group.precision.clip_by_group = true;
  CHECK(contains(message_of_setup(group), "clip_by_group"));
}

TEST_SUITE_END();
