#include "callbacks/builtin/average_weights.h"

#include <doctest/doctest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <algorithm>
#include <exception>
#include <string>
#include <vector>

#include "callbacks/algorithms/surgeries.h"
#include "callbacks/core/sparsity_callback.h"
#include "checkpoint/checkpoint_file.h"
#include "core/error.h"
#include "models/from_module.h"
#include "models/model_state.h"
#include "sparsity/algorithms.h"
#include "support/probe_callback.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// Keeps the model's first parameter after each update.
class Weights final : public Callback {
 public:
  struct Options {
    std::vector<at::Tensor>* kept = nullptr;
  };

  explicit Weights(const Options& options) : options_(options) {}

  void on_train_batch_end(Trainer&, Model& model, const Outputs&, const Batch&, int64_t) override {
    options_.kept->push_back(named_parameters(model.module())[0].second.detach().clone());
  }

 private:
  Options options_;
};

TrainerOptions options_of(const std::filesystem::path& dir,
                          const std::string& mode,
                          const AverageWeights::Options& average) {
  TrainerOptions options = tiny_options(dir);
  options.backend.mode = mode;
  options.loop.max_steps = 10;
  options.loop.eval_frequency = 5;
  options.checkpoint.steps = 5;
  options.callbacks = {use<AverageWeights>(average)};
  return options;
}

at::Tensor first_average(Trainer& trainer) {
  return trainer.callback<AverageWeights>()->captured_state()[0].second;
}

}  // namespace

TEST_SUITE_BEGIN("callbacks/builtin/average_weights");

TEST_CASE("the average is that of the weights after each update that counts") {
  for (const std::string mode : {"eager", "traced"}) {
    for (const std::string kind : {"ema", "swa"}) {
      CAPTURE(mode + " " + kind);
      const TempDir dir;
      AverageWeights::Options average;
      average.kind = kind;
      average.decay = 0.8;
      average.start = 3;
      average.every = 2;
      TrainerOptions options = options_of(dir / "run", mode, average);
      std::vector<at::Tensor> weights;
      options.callbacks.push_back(use<Weights>({&weights}));
      Trainer trainer(options, quiet_log());
      trainer.fit(tiny_loader("train", 24, 2), {tiny_loader("val", 4)});
      REQUIRE(weights.size() == 10);
      at::Tensor expected = weights[3];  // updates 4, 6, 8 and 10
      for (const int i : {5, 7, 9}) {
        expected = kind == "ema" ? expected * 0.8 + weights[static_cast<size_t>(i)] * 0.2
                                 : expected + weights[static_cast<size_t>(i)];
      }
      expected = kind == "ema" ? expected : expected / 4;
      CHECK(at::allclose(first_average(trainer), expected, 1e-5, 1e-6));
    }
  }
}

TEST_CASE("traced equals eager, and a resumed run the whole one") {
  const TempDir dir;
  const auto fit = [](const TrainerOptions& options) {
    Trainer trainer(options, quiet_log());
    trainer.fit(tiny_loader("train", 24, 2), {tiny_loader("val", 4)});
    return read_checkpoint(options.model_dir / "checkpoint_10.pt").at("callbacks").as_dict();
  };
  AverageWeights::Options average;
  average.decay = 0.9;
  const StateDict eager = fit(options_of(dir / "eager", "eager", average));
  CHECK(eager.at("AverageWeights/averaged").as_int() == 10);
  CHECK(first_difference(eager, fit(options_of(dir / "traced", "traced", average))) == "");
  TrainerOptions resumed = options_of(dir / "resumed", "traced", average);
  resumed.checkpoint.load.path = dir / "eager/checkpoint_5.pt";
  CHECK(first_difference(eager, fit(resumed)) == "");
}

TEST_CASE("C70: a validation sees the average, and training goes on with the raw weights") {
  const TempDir dir;
  AverageWeights::Options average;
  average.decay = 0.5;
  Trainer trainer(options_of(dir / "with", "traced", average), quiet_log());
  trainer.fit(tiny_loader("train", 24, 2), {tiny_loader("val", 4)});
  TrainerOptions plain = options_of(dir / "without", "traced", average);
  plain.callbacks = {};
  Trainer raw(plain, quiet_log());
  raw.fit(tiny_loader("train", 24, 2), {tiny_loader("val", 4)});
  const auto weights = [](Trainer& of) { return model_state(of.state().model->module()); };
  CHECK(first_difference(weights(trainer), weights(raw)) == "");
  const auto loss = [](Trainer& of) {
    return *of.validate(tiny_loader("val", 4)).number("val/loss");
  };
  const double of_average = loss(trainer);
  CHECK(of_average != loss(raw));
  load_model_state(
      raw.state().model->module(),
      [&] {
        StateDict state;
        for (const NamedTensor& tensor : trainer.callback<AverageWeights>()->captured_state()) {
          if (tensor.first != "share") {
            state.set(tensor.first, tensor.second.clone());
          }
        }
        return state;
      }(),
      /*strict=*/true);
  CHECK(of_average == loss(raw));
}

TEST_CASE("what is saved while a validation sees the average has the raw weights as the model") {
  class Saver final : public Callback {
   public:
    struct Options {
      StateDict* state = nullptr;
    };

    explicit Saver(const Options& options) : options_(options) {}

    void on_validate_batch_start(Trainer& trainer, Model&, const Batch&, int64_t) override {
      StateDict state;
      trainer.call(hooks::on_save_checkpoint, state);
      trainer.call(hooks::postprocess_checkpoint, state);
      *options_.state = deep_copy(state);
    }

   private:
    Options options_;
  };

  const TempDir dir;
  StateDict saved;
  AverageWeights::Options average;
  average.decay = 0.5;
  TrainerOptions options = options_of(dir / "run", "eager", average);
  options.callbacks.push_back(use<Saver>({&saved}));
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train", 24, 2), {tiny_loader("val", 4)});
  CHECK(first_difference(saved.at("model").as_dict(),
                         model_state(trainer.state().model->module())) == "");
}

TEST_CASE(
    "the average can be the model of checkpoints, and a resume goes on with the raw weights") {
  const TempDir dir;
  AverageWeights::Options average;
  average.decay = 0.9;
  const auto fit = [&](const char* name, const char* save, const LoadFrom& from) {
    average.save = save;
    TrainerOptions options = options_of(dir / name, "traced", average);
    Trainer trainer(options, quiet_log());
    trainer.fit(tiny_loader("train", 24, 2), {tiny_loader("val", 4)}, from);
    return bits_of(trainer);
  };
  const StateDict beside = fit("beside", "beside", {});
  const StateDict instead = fit("instead", "instead", {});
  const std::filesystem::path file = dir / "instead/checkpoint_5.pt";
  const StateDict saved = read_checkpoint(file);
  const StateDict of_beside = read_checkpoint(dir / "beside/checkpoint_5.pt");
  const auto bytes = [](const StateDict& state, const char* place) {
    return state.at(place).as_dict().at("0.weight").as_tensor();
  };
  CHECK(equal_bytes(bytes(saved, "model"), bytes(of_beside, "callbacks/AverageWeights")));
  CHECK(equal_bytes(bytes(saved, "callbacks/AverageWeights"), bytes(of_beside, "model")));
  for (const StateDict& run : {instead, fit("resumed", "instead", file)}) {
    for (const char* section : {"model", "optimizer", "rng"}) {
      CHECK(first_difference(beside.at(section).as_dict(), run.at(section).as_dict()) == "");
    }
  }
  CHECK(first_difference(read_checkpoint(dir / "instead/checkpoint_10.pt").at("model").as_dict(),
                         read_checkpoint(dir / "resumed/checkpoint_10.pt").at("model").as_dict()) ==
        "");
}

TEST_CASE("the average is written when a fit ends, its batch norms with statistics of their own") {
  namespace nn = torch::nn;
  const TempDir dir;
  AverageWeights::Options average;
  average.kind = "swa";
  average.update_batch_norm = true;
  average.export_to = "average.pt";
  TrainerOptions options = options_of(dir / "run", "traced", average);
  const auto make = [] {
    return nn::Sequential(nn::Linear(4, 5), nn::BatchNorm1d(5), nn::Dropout(0.5), nn::Linear(5, 3));
  };
  options.model = from_module(make, "x", cross_entropy("label"));
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train", 24, 4), {tiny_loader("val", 4)});
  const StateDict raw = deep_copy(model_state(trainer.state().model->module()));
  CHECK(first_difference(
            raw, read_checkpoint(dir / "run/checkpoint_10.pt").at("model").as_dict()) == "");
  const StateDict written = read_checkpoint(dir / "run/average.pt").at("model").as_dict();
  CHECK(written.names() == raw.names());
  nn::Sequential module = make();
  load_model_state(*module, written, /*strict=*/true);
  const at::NoGradGuard no_grad;
  at::Tensor mean = at::zeros({5});
  at::Tensor variance = at::zeros({5});
  const auto stream = tiny_loader("train", 24, 4).stream({}, 7);
  int batches = 0;
  while (const auto batch = stream->next()) {
    const at::Tensor x = module->at<nn::LinearImpl>(0).forward((*batch)["x"]);
    mean += x.mean(0);
    variance += x.var(0, /*unbiased=*/true);
    ++batches;
  }
  CHECK(batches == 6);
  CHECK(at::allclose(written.at("1.running_mean").as_tensor(), mean / batches, 1e-4, 1e-5));
  CHECK(at::allclose(written.at("1.running_var").as_tensor(), variance / batches, 1e-4, 1e-5));
}

TEST_CASE("batch norms of the average see layers as a run's algorithms change them") {
  namespace nn = torch::nn;
  const TempDir dir;
  AverageWeights::Options average;
  average.kind = "swa";
  average.update_batch_norm = true;
  average.export_to = "average.pt";
  Factorize::Options factors;
  factors.min_features = 4;
  factors.latent_features = 2;
  TrainerOptions options = options_of(dir / "run", "traced", average);
  options.algorithms = {use<Factorize>(factors)};
  options.model = from_module(
      [] { return nn::Sequential(nn::Linear(4, 5), nn::BatchNorm1d(5), nn::Linear(5, 3)); },
      "x",
      cross_entropy("label"));
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train", 24, 24), {tiny_loader("val", 4)});
  const StateDict written = read_checkpoint(dir / "run/average.pt").at("model").as_dict();
  const auto stream = tiny_loader("train", 24, 24).stream({}, 7);
  const at::Tensor x = (*stream->next())["x"];
  const at::Tensor weight =
      written.at("0.factor_out").as_tensor().matmul(written.at("0.factor_in").as_tensor());
  const at::Tensor mean = at::linear(x, weight, written.at("0.bias").as_tensor()).mean(0);
  CHECK(at::allclose(written.at("1.running_mean").as_tensor(), mean, 1e-4, 1e-5));
}

TEST_CASE("C70: a half-life, and times of any unit, stand for a decay and for updates") {
  const TempDir dir;
  const auto average_of = [&](const char* run, const AverageWeights::Options& average) {
    Trainer trainer(options_of(dir / run, "traced", average), quiet_log());
    trainer.fit(tiny_loader("train", 8, 2));
    return first_average(trainer).clone();
  };
  AverageWeights::Options plain;
  plain.decay = 0.25;  // 2^(-2 / 1)
  plain.start = 4;
  plain.every = 2;
  AverageWeights::Options timed;
  timed.half_life = Time(1);
  timed.start = Time("1ep");
  timed.every = Time(0.2);  // of 10 updates
  CHECK(average_of("plain", plain).equal(average_of("timed", timed)));
  timed.every = Time("100sp");
  CHECK_THROWS_AS(average_of("samples", timed), HookError);
}

TEST_CASE("predictions are made with the average too") {
  const TempDir dir;
  AverageWeights::Options average;
  average.decay = 0.5;
  Trainer trainer(options_of(dir / "run", "traced", average), quiet_log());
  trainer.fit(tiny_loader("train", 24, 2));
  const at::Tensor of_average = trainer.predict(tiny_loader("val", 4))["logits"];
  NamedTensors averages = trainer.callback<AverageWeights>()->captured_state();
  averages.pop_back();  // the share
  const at::NoGradGuard no_grad;
  for (const NamedTensor& tensor : averages) {
    trainer.state().model->module().named_parameters()[tensor.first].copy_(tensor.second);
  }
  TrainerOptions plain = options_of(dir / "plain", "traced", average);
  plain.callbacks = {};
  Trainer without(plain, quiet_log());
  load_model_state(without.state().model->module(),
                   model_state(trainer.state().model->module()),
                   /*strict=*/true);
  CHECK(without.predict(tiny_loader("val", 4), LoadFrom::nothing())["logits"].equal(of_average));
}

TEST_CASE("options out of their range are refused") {
  AverageWeights::Options options;
  options.half_life = Time(0);
  CHECK_THROWS_AS(AverageWeights{options}, UsageError);
  options.half_life = {};
  options.kind = "mean";
  CHECK_THROWS_AS(AverageWeights{options}, UsageError);
  options.kind = "swa";
  options.every = 0;
  CHECK_THROWS_AS(AverageWeights{options}, UsageError);
}

TEST_CASE("under bf16_pure the average is that of the masters, in float32, also in checkpoints") {
  for (const std::string save : {"beside", "instead"}) {
    for (const std::string mode : {"eager", "traced"}) {
      CAPTURE(save + " " + mode);
      const TempDir dir;
      AverageWeights::Options average;
      average.decay = 0.999;
      average.save = save;
      const auto options_in = [&](const char* name) {
        TrainerOptions options = options_of(dir / name, mode, average);
        options.precision.dtype = "bf16_pure";
        options.precision.on_unsupported = "emulate";
        return options;
      };
      TrainerOptions options = options_in("run");
      at::Tensor expected;
      ProbeCallback::Options probe;
      probe.train_batch_end = [&](Trainer& trainer) {
        const at::Tensor master = trainer.state().optimizer->groups()[0].params[0].value;
        expected = expected.defined() ? expected * 0.999 + master * 0.001 : master.clone();
      };
      options.callbacks.push_back(use<ProbeCallback>(probe));
      Trainer trainer(options, quiet_log());
      trainer.fit(tiny_loader("train", 24, 2), {tiny_loader("val", 4)});
      CHECK((first_average(trainer).scalar_type() == at::kFloat));
      CHECK(at::allclose(first_average(trainer), expected, 1e-6, 1e-7));
      TrainerOptions again = options_in("resumed");
      again.checkpoint.load.path = dir / "run/checkpoint_5.pt";
      Trainer resumed(again, quiet_log());
      resumed.fit(tiny_loader("train", 24, 2), {tiny_loader("val", 4)});
      CHECK(equal_bytes(first_average(resumed), first_average(trainer)));
      CHECK(first_difference(model_state(resumed.state().model->module()),
                             model_state(trainer.state().model->module())) == "");
    }
  }
}

TEST_CASE("an average in half precision, of an older checkpoint, is taken") {
  const TempDir dir;
  AverageWeights::Options average;
  const auto options_in = [&](const char* name) {
    TrainerOptions options = options_of(dir / name, "eager", average);
    options.precision.dtype = "bf16_pure";
    options.precision.on_unsupported = "emulate";
    return options;
  };
  Trainer trainer(options_in("run"), quiet_log());
  trainer.fit(tiny_loader("train", 24, 2), {tiny_loader("val", 4)});
  StateDict state = deep_copy(read_checkpoint(dir / "run/checkpoint_10.pt"));
  at::Tensor older;
  for (StateDict::Item& item : state.find("callbacks/AverageWeights")->as_dict().items()) {
    if (item.first == "0.weight") {
      older = item.second.as_tensor().to(at::kBFloat16);
      item.second = older;
    }
  }
  REQUIRE(older.defined());
  Trainer other(options_in("other"), quiet_log());
  other.load_state_dict(state);
  CHECK(equal_bytes(first_average(other), older.to(at::kFloat)));
}

TEST_CASE("in a sparse run the average is zero where the weight is pruned") {
  for (const std::string save : {"beside", "instead"}) {
    CAPTURE(save);
    const TempDir dir;
    AverageWeights::Options average;
    average.decay = 0.5;
    average.save = save;
    average.export_to = "average.pt";
    TrainerOptions options = options_of(dir / "run", "traced", average);
    options.sparsity.sparsity = {0.25, 0.75, "linear"};
    options.sparsity.algorithm = use<GradualMagnitudePruning>();
    options.sparsity.update = {1, 0, 10};
    Trainer trainer(options, quiet_log());
    trainer.fit(tiny_loader("train", 24, 2), {tiny_loader("val", 4)});
    const at::Tensor pruned =
        trainer.slot<SparsityCallback>().masks()->groups()[0].masks()[0].kept().logical_not();
    const at::Tensor exported =
        read_checkpoint(dir / "run/average.pt").at("model").as_dict().at("0.weight").as_tensor();
    const at::Tensor saved = read_checkpoint(dir / "run/checkpoint_10.pt")
                                 .at("model")
                                 .as_dict()
                                 .at("0.weight")
                                 .as_tensor();
    CHECK(pruned.sum().item<int64_t>() == 9);
    for (const at::Tensor& tensor : {first_average(trainer), exported, saved}) {
      CHECK(tensor.masked_select(pruned).eq(0).all().item<bool>());
      CHECK(tensor.masked_select(pruned.logical_not()).ne(0).all().item<bool>());
    }
  }
}

TEST_CASE("two averages cannot both be what validations see, or a checkpoint's model") {
  const auto message_of = [](bool in_validation, const std::string& save) {
    const TempDir dir;
    AverageWeights::Options average;
    average.in_validation = in_validation;
    average.save = save;
    TrainerOptions options = options_of(dir / "run", "eager", average);
    options.callbacks = {use<AverageWeights>(average).labelled("fast"),
                         use<AverageWeights>(average).labelled("slow")};
    try {
      const Trainer trainer(options, quiet_log());
    } catch (const Error&) {
      return describe(std::current_exception());
    }
    return std::string();
  };
  CHECK(message_of(true, "beside").find("in_validation") != std::string::npos);
  CHECK(message_of(false, "instead").find("save") != std::string::npos);
  CHECK(message_of(false, "beside") == "");
}

TEST_CASE("an average that starts after the run's end warns when the run begins") {
  const auto warnings = [](int64_t start) {
    const TempDir dir;
    AverageWeights::Options average;
    average.start = start;
    std::vector<std::string> lines;
    Trainer trainer(options_of(dir / "run", "eager", average), quiet_log(&lines));
    trainer.fit(tiny_loader("train", 24, 2), {tiny_loader("val", 4)});
    return std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
      return line.find("AverageWeights: start is") != std::string::npos;
    });
  };
  CHECK(warnings(9) == 0);
  CHECK(warnings(10) == 1);
}

TEST_SUITE_END();
