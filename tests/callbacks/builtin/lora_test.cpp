#include "callbacks/builtin/lora.h"

#include <doctest/doctest.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <memory>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_file.h"
#include "checkpoint/checkpoint_tools.h"
#include "core/error.h"
#include "core/file_system.h"
#include "data/tensor_dataset.h"
#include "models/builtin/gpt.h"
#include "models/builtin/mlp.h"
#include "models/from_module.h"
#include "models/model_state.h"
#include "optim/adam.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace fs = std::filesystem;

namespace {

Factory<Model> mlp() {
  Mlp::Options model;
  model.sizes = {4, 8, 3};
  model.input = "x";
  return use<Mlp>(model);
}

/// A part of a user's own.
struct Hidden : torch::nn::Module {
  Hidden() { register_module("layer", layer); }

  at::Tensor forward(const at::Tensor& x) { return layer(x).relu(); }

  torch::nn::Linear layer{6, 6};
};

Factory<Model> tree() {
  return from_module(
      [] {
        namespace nn = torch::nn;
        return nn::Sequential(nn::Linear(4, 6), std::make_shared<Hidden>(), nn::Linear(6, 3));
      },
      "x",
      cross_entropy("label"));
}

Factory<Model> gpt() {
  Gpt::Options model;
  model.layers = 1;
  model.heads = 2;
  model.width = 8;
  model.context = 6;
  model.vocabulary = 5;
  model.dropout = 0.1;
  return use<Gpt>(model);
}

DataLoader words() {
  LoaderOptions batches;
  batches.batch_size = 2;
  const at::Tensor tokens = at::arange(24 * 7).remainder(5).view({24, 7});
  return DataLoader("train",
                    from_tensors({{"tokens", tokens.narrow(1, 0, 6).contiguous()},
                                  {"targets", tokens.narrow(1, 1, 6).contiguous()}}),
                    batches);
}

DataLoader points() {
  return tiny_loader("train", 24, 2);
}

struct Subject {
  const char* name;
  Factory<Model> (*model)();
  DataLoader (*data)();
  std::vector<std::string> modules;
};

const std::vector<Subject>& subjects() {
  static const std::vector<Subject> kSubjects = {{"Mlp", mlp, points, {"layer*"}},
                                                 {"Gpt", gpt, words, {"block*.qkv", "head"}},
                                                 {"tree", tree, points, {"0", "1.layer"}}};
  return kSubjects;
}

Lora::Options lora_of(const std::vector<std::string>& modules) {
  Lora::Options lora;
  lora.modules = modules;
  lora.rank = 2;
  return lora;
}

TrainerOptions options_of(const fs::path& dir,
                          const std::string& mode,
                          const Factory<Model>& model,
                          const Lora::Options& lora) {
  TrainerOptions options = tiny_options(dir);
  options.model = model;
  options.optimizer = use<AdamW>({2e-2});
  options.backend.mode = mode;
  options.loop.max_steps = 12;
  options.loop.eval_frequency = 0;
  options.checkpoint.steps = 5;
  options.callbacks = {use<Lora>(lora)};
  return options;
}

StateDict fit(const TrainerOptions& options, const DataLoader& data, const LoadFrom& from = {}) {
  Trainer trainer(options, quiet_log());
  trainer.fit(data, {}, from);
  return bits_of(trainer);
}

StateDict model_in(const fs::path& path) {
  return read_checkpoint(path).at("model").as_dict();
}

/// A file as Python's `torch.save(model.state_dict(), path)` writes it, of a model without
/// adapters.
fs::path state_dict_file(const fs::path& path, const Factory<Model>& model) {
  const std::unique_ptr<Model> made = model.make();
  write_checkpoint(*real_file_system(), path, model_state(made->module()));
  return path;
}

}  // namespace

TEST_SUITE_BEGIN("callbacks/builtin/lora");

TEST_CASE("traced equals eager, and a resumed run the whole one") {
  for (const Subject& subject : subjects()) {
    for (const double dropout : {0.0, 0.25}) {
      CAPTURE(subject.name);
      CAPTURE(dropout);
      const TempDir dir;
      Lora::Options lora = lora_of(subject.modules);
      lora.dropout = dropout;
      const auto options = [&](const char* name, const char* mode) {
        return options_of(dir / name, mode, subject.model(), lora);
      };
      const StateDict eager = fit(options("eager", "eager"), subject.data());
      CHECK(first_difference(eager, fit(options("traced", "traced"), subject.data())) == "");
      const StateDict resumed =
          fit(options("resumed", "traced"), subject.data(), dir / "traced/checkpoint_5.pt");
      CHECK(first_difference(eager, resumed) == "");
    }
  }
}

TEST_CASE("only adapters change, and a validation sees them") {
  const TempDir dir;
  Trainer trainer(options_of(dir / "run", "traced", mlp(), lora_of({"layer0"})), quiet_log());
  const StateDict before = deep_copy(model_state(trainer.state().model->module()));
  const double first = *trainer.validate(tiny_loader("val", 8)).number("val/loss");
  trainer.fit(points());
  const StateDict after = model_state(trainer.state().model->module());
  for (const StateDict::Item& item : before.items()) {
    const bool is_trained = item.first == "layer0.lora_A" || item.first == "layer0.lora_B";
    CAPTURE(item.first);
    CHECK(equal_bytes(item.second.as_tensor(), after.at(item.first).as_tensor()) != is_trained);
  }
  CHECK(*trainer.validate(tiny_loader("val", 8)).number("val/loss") != first);
}

TEST_CASE("a Python state_dict is fine-tuned, its adapters are saved alone and loaded again") {
  for (const Subject& subject : subjects()) {
    CAPTURE(subject.name);
    const TempDir dir;
    torch::manual_seed(11);
    Lora::Options lora = lora_of(subject.modules);
    lora.base = state_dict_file(dir / "base.pt", subject.model());
    const StateDict whole =
        fit(options_of(dir / "all", "traced", subject.model(), lora), subject.data());
    lora.save = "adapters";
    const TrainerOptions options = options_of(dir / "run", "traced", subject.model(), lora);
    fit(options, subject.data());
    const StateDict saved = model_in(dir / "run/checkpoint_5.pt");
    for (const StateDict::Item& item : saved.items()) {
      CHECK(item.first.find("lora_") != std::string::npos);
    }
    const TrainerOptions other = options_of(dir / "other", "traced", subject.model(), lora);
    const StateDict resumed = fit(other, subject.data(), dir / "run/checkpoint_5.pt");
    CHECK(first_difference(whole.at("model").as_dict(), resumed.at("model").as_dict()) == "");
    const StateDict base = read_checkpoint(lora.base);
    for (const StateDict::Item& item : base.items()) {
      CHECK(equal_bytes(item.second.as_tensor(),
                        resumed.at("model").as_dict().at(item.first).as_tensor()));
    }
  }
}

TEST_CASE("merged into the weights, a plain model computes the bytes that were trained") {
  for (const Subject& subject : subjects()) {
    CAPTURE(subject.name);
    const TempDir dir;
    torch::manual_seed(11);
    Lora::Options lora = lora_of(subject.modules);
    lora.base = state_dict_file(dir / "base.pt", subject.model());
    lora.save = "adapters";
    Trainer trainer(options_of(dir / "run", "traced", subject.model(), lora), quiet_log());
    trainer.fit(subject.data());
    const StateDict adapters = read_checkpoint(dir / "run/checkpoint_12.pt");
    CHECK_THROWS_AS(merge_adapters(adapters, {}), CheckpointError);
    CHECK_THROWS_AS(merge_adapters(read_checkpoint(lora.base), {}), CheckpointError);
    const StateDict merged = merge_adapters(adapters, read_checkpoint(lora.base));
    write_any(*real_file_system(), dir / "merged.pt", merged);
    TrainerOptions plain = options_of(dir / "plain", "eager", subject.model(), lora);
    plain.callbacks = {};
    Trainer other(plain, quiet_log());
    const auto loss = [&](Trainer& of, const LoadFrom& from) {
      return *of.validate(subject.data(), from).number("train/loss");
    };
    CHECK(loss(trainer, {}) == loss(other, dir / "merged.pt"));
  }
}

TEST_CASE("a checkpoint without adapters is loaded, and they begin where they are") {
  const TempDir dir;
  TrainerOptions dense = options_of(dir / "dense", "eager", mlp(), lora_of({"layer0"}));
  dense.callbacks = {};
  fit(dense, points());
  TrainerOptions options = options_of(dir / "run", "traced", mlp(), lora_of({"layer0"}));
  options.checkpoint.load.path = dir / "dense/checkpoint_12.pt";
  options.checkpoint.load.weights_only = true;
  Trainer trainer(options, quiet_log());
  trainer.fit(points());
  const StateDict after = model_state(trainer.state().model->module());
  CHECK(equal_bytes(after.at("layer1.weight").as_tensor(),
                    model_in(dir / "dense/checkpoint_12.pt").at("layer1.weight").as_tensor()));
}

TEST_CASE("adapters alone without a base, and a base that does not fit, are errors") {
  Lora::Options lora = lora_of({"layer0"});
  lora.save = "adapters";
  CHECK_THROWS_AS(Lora{lora}, UsageError);
  const TempDir dir;
  lora.base = state_dict_file(dir / "base.pt", tree());
  CHECK_THROWS_AS(Trainer(options_of(dir / "run", "eager", mlp(), lora), quiet_log()), Error);
}

TEST_SUITE_END();
