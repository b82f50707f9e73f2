#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "core/random.h"
#include "core/registry.h"
#include "data/tensor_dataset.h"
#include "models/losses/register.h"
#include "models/models.h"
#include "models/register.h"
#include "optim/adam.h"
#include "optim/sgd.h"
#include "support/every_optimizer.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

#include <torch/csrc/jit/api/module.h>
#include <torch/script.h>
#include <torch/types.h>
#include <torch/utils.h>

using namespace rondo;
using namespace rondo::test;

namespace {

constexpr int64_t kUpdates = 50;

/// A small model of each kind with data of its shape.
struct Subject {
  std::string name;
  Factory<Model> (*model)(double dropout);
  Factory<DataSource> (*data)();
};

at::Tensor uniform(at::IntArrayRef sizes) {
  KeyedRandom random(5);
  at::Tensor values = at::empty(sizes);
  float* const data = values.data_ptr<float>();
  for (int64_t i = 0; i < values.numel(); ++i) {
    data[i] = static_cast<float>(random.uniform());
  }
  return values;
}

at::Tensor integers(at::IntArrayRef sizes, uint64_t bound, uint64_t seed) {
  KeyedRandom random(seed);
  at::Tensor values = at::empty(sizes, at::kLong);
  int64_t* const data = values.data_ptr<int64_t>();
  for (int64_t i = 0; i < values.numel(); ++i) {
    data[i] = static_cast<int64_t>(random.below(bound));
  }
  return values;
}

Factory<DataSource> tokens() {
  return from_tensors(
      {{"tokens", integers({12, 6}, 11, 1)}, {"targets", integers({12, 6}, 11, 2)}});
}

Factory<DataSource> images(int64_t channels, int64_t size) {
  return from_tensors(
      {{"image", uniform({12, channels, size, size})}, {"label", integers({12}, 10, 3)}});
}

Factory<Model> mlp(double dropout) {
  Mlp::Options options;
  options.sizes = {64, 16, 10};
  options.dropout = dropout;
  return use<Mlp>(options);
}

Factory<Model> cnn(double dropout) {
  Cnn::Options options;
  options.image_size = 8;
  options.widths = {3, 5};
  options.dropout = dropout;
  return use<Cnn>(options);
}

Factory<Model> gpt(double dropout) {
  Gpt::Options options;
  options.layers = 1;
  options.heads = 2;
  options.width = 8;
  options.context = 6;
  options.vocabulary = 11;
  options.dropout = dropout;
  return use<Gpt>(options);
}

Factory<Model> lstm(double dropout) {
  Lstm::Options options;
  options.vocabulary = 11;
  options.width = 6;
  options.layers = 2;
  options.dropout = dropout;
  return use<Lstm>(options);
}

Factory<Model> resnet(double) {
  ResNet::Options options;
  options.blocks = 1;
  options.width = 4;
  return use<ResNet>(options);
}

/// A TorchScript file with two layers and dropout, which returns a tuple.
Factory<Model> script(double dropout) {
  static const TempDir dir;
  const std::filesystem::path path = dir / (dropout > 0.0 ? "dropout.pt" : "plain.pt");
  torch::manual_seed(3);
  torch::jit::Module root("Root");
  root.register_attribute("training", c10::BoolType::get(), true);
  root.register_parameter(
      "first", (torch::randn({64, 16}) * 0.1).requires_grad_(), /*is_buffer=*/false);
  root.register_parameter(
      "second", (torch::randn({16, 10}) * 0.1).requires_grad_(), /*is_buffer=*/false);
  root.define(
      "def forward(self, x):\n"
      "    h = torch.relu(torch.mm(torch.flatten(x, 1), self.first))\n"
      "    h = torch.dropout(h, " +
      std::to_string(dropout) +
      ", self.training)\n"
      "    return (torch.mm(h, self.second), h)\n");
  root.save(path.string());
  ScriptModel::Options options;
  options.path = path;
  options.outputs = {"logits", "hidden"};
  return use<ScriptModel>(options);
}

Factory<Model> table_mlp(double dropout) {
  TableMlp::Options options;
  options.features = 3;
  options.categories = std::vector<int64_t>{4, 3};
  options.classes = 3;
  options.targets = 0;
  options.hidden = {8, 8};
  options.dropout = dropout;
  return use<TableMlp>(options);
}

Factory<DataSource> table_rows() {
  return from_tensors({{"features", uniform({12, 3})},
                       {"categories", integers({12, 2}, 3, 1)},
                       {"weight", uniform({12})},
                       {"label", integers({12}, 3, 2)}});
}

Factory<Model> gru(double dropout) {
  Gru::Options options;
  options.vocabulary = 11;
  options.width = 6;
  options.layers = 2;
  options.dropout = dropout;
  return use<Gru>(options);
}

/// Llama's parts: the other choice of everything that a Gpt is made of.
Factory<Model> llama(double dropout) {
  Gpt::Options options;
  options.layers = 1;
  options.heads = 4;
  options.kv_heads = 2;
  options.width = 16;
  options.context = 6;
  options.vocabulary = 11;
  options.dropout = dropout;
  options.positions = "rotary";
  options.norm = "rms";
  options.activation = "swiglu";
  options.bias = false;
  options.tied = true;
  return use<Gpt>(options);
}

Factory<Model> deep_resnet(double) {
  DeepResNet::Options options;
  options.width = 2;
  options.stem = "cifar";
  return use<DeepResNet>(options);
}

Factory<Model> mobile_net(double dropout) {
  MobileNet::Options options;
  options.width = 0.1;
  options.stem = "cifar";
  options.dropout = dropout;
  return use<MobileNet>(options);
}

Factory<Model> vit(double dropout) {
  Vit::Options options;
  options.image_size = 8;
  options.layers = 1;
  options.heads = 2;
  options.width = 8;
  options.dropout = dropout;
  return use<Vit>(options);
}

Factory<Model> u_net(double) {
  UNet::Options options;
  options.classes = 4;
  options.width = 4;
  options.depth = 1;
  return use<UNet>(options);
}

Factory<DataSource> masks() {
  return from_tensors({{"image", uniform({12, 1, 8, 8})}, {"mask", integers({12, 8, 8}, 4, 3)}});
}

Factory<Model> forecaster(double dropout) {
  Forecaster::Options options;
  options.layers = 2;
  options.width = 6;
  options.horizon = 2;
  options.dropout = dropout;
  return use<Forecaster>(options);
}

Factory<DataSource> series() {
  return from_tensors({{"series", uniform({12, 9})}, {"target", uniform({12, 2})}});
}

Factory<Model> autoencoder(double) {
  Autoencoder::Options options;
  options.sizes = {64, 16, 4};
  return use<Autoencoder>(options);
}

Factory<Model> vae(double) {
  Vae::Options options;
  options.sizes = {64, 16, 4};
  return use<Vae>(options);
}

Factory<Model> diffusion(double) {
  Diffusion::Options options;
  options.image_size = 8;
  options.width = 8;
  options.depth = 1;
  options.steps = 10;
  return use<Diffusion>(options);
}

/// Models whose settings beyond those of the first ones are few: each is compared in two cases.
const Subject kMoreSubjects[] = {
    {"Gru", gru, tokens},
    {"Gpt", llama, tokens},
    {"DeepResNet", deep_resnet, [] { return images(3, 8); }},
    {"MobileNet", mobile_net, [] { return images(3, 8); }},
    {"Vit", vit, [] { return images(3, 8); }},
    {"UNet", u_net, masks},
    {"Forecaster", forecaster, series},
    {"Autoencoder", autoencoder, [] { return images(1, 8); }},
    {"Vae", vae, [] { return images(1, 8); }},
    {"Diffusion", diffusion, [] { return images(1, 8); }},
};

const Subject kSubjects[] = {
    {"Mlp", mlp, [] { return images(1, 8); }},
    {"Cnn", cnn, [] { return images(1, 8); }},
    {"ResNet", resnet, [] { return images(3, 8); }},
    {"Lstm", lstm, tokens},
    {"Gpt", gpt, tokens},
    {"ScriptModel", script, [] { return images(1, 8); }},
    {"TableMlp", table_mlp, table_rows},
};

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
  const Subject* subject;
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
    options.loop.max_steps = kUpdates / 5;
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
  options.loop.max_steps = kUpdates;
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
  for (const Subject& subject : kSubjects) {
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
  for (const Subject& subject : kMoreSubjects) {
    check_equal({&subject, adamw(), 1, true, false});
    check_equal({&subject, sgd_with_momentum(), 3, false, true});
  }
}

TEST_CASE("the other models are recorded, and their validations too") {
  for (const Subject& subject : kMoreSubjects) {
    CAPTURE(subject.name);
    check_run_equal(subject.model(0.2), subject.data());
  }
}

TEST_CASE("T75: 50 traced updates equal 50 eager ones, bit for bit, for every optimizer") {
  for (const RegisteredOptimizer& optimizer : every_optimizer()) {
    check_equal({&kSubjects[0], optimizer, 1, false, false});
    check_equal({&kSubjects[0], optimizer, 3, true, true});
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
    const auto is_it = [&](const Subject& subject) { return subject.name == entry.name; };
    CHECK((std::any_of(std::begin(kSubjects), std::end(kSubjects), is_it) ||
           std::any_of(std::begin(kMoreSubjects), std::end(kMoreSubjects), is_it)));
  }
}

TEST_CASE("traced equals eager in every precision, for every model") {
  const auto check_all = [](const auto& subjects) {
    for (const Subject& subject : subjects) {
      // LibTorch 1.13 has no transposed convolution in bfloat16 on CPUs.
      const bool has_transposed = subject.name == "UNet" || subject.name == "Diffusion";
      for (const char* dtype : {"fp64", "bf16", "fp16", "bf16_pure"}) {
        if (!has_transposed || dtype != std::string("bf16_pure")) {
          check_equal({&subject, adamw(), 3, true, true, dtype});
        }
      }
    }
  };
  check_all(kSubjects);
  check_all(kMoreSubjects);
}

TEST_SUITE_END();
