#include "trainer/export_inference.h"

#include <doctest/doctest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/script.h>

#include <cstring>
#include <string>
#include <vector>

#include "callbacks/builtin/average_weights.h"
#include "callbacks/builtin/export_for_inference.h"
#include "checkpoint/safetensors_file.h"
#include "core/error.h"
#include "models/from_module.h"
#include "models/model_state.h"
#include "rondo_step.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

TEST_SUITE_BEGIN("trainer/export_inference");

using namespace rondo;
using namespace rondo::test;

namespace {

/// A trained run of a model with state, dropout, and averaged weights that evaluations see.
struct Trained {
  Trained() {
    options.model = from_module(
        [] {
          return torch::nn::Sequential(torch::nn::Linear(4, 8),
                                       torch::nn::BatchNorm1d(8),
                                       torch::nn::Dropout(0.4),
                                       torch::nn::Linear(8, 3));
        },
        "x",
        cross_entropy("label"));
    options.loop.max_steps = 6;
    options.backend.mode = "traced";
    AverageWeights::Options average;
    options.callbacks = {use<AverageWeights>(average)};
    Trainer(options, quiet_log()).fit(tiny_loader("train"), {val});
    Trainer evaluating(options, quiet_log());
    expected = evaluating.predict(val)["logits"];
    for (const auto& batch : {0, 4}) {
      x.push_back(batch_at(batch));
    }
  }

  /// Rows of the validation's data from a sample on.
  at::Tensor batch_at(int64_t first) const {
    std::vector<at::Tensor> rows;
    const auto& data = dynamic_cast<const Dataset&>(val.source());
    for (int64_t i = first; i < first + 4; ++i) {
      rows.push_back(data.get(i)["x"]);
    }
    return at::stack(rows);
  }

  RunConfig run() const {
    RunConfig run;
    run.init = options;
    run.fit = RunConfig::Fit{tiny_loader("train"), {val}, {}};
    return run;
  }

  TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  DataLoader val = tiny_loader("val", 8, 4, 2);
  at::Tensor expected;
  std::vector<at::Tensor> x;
};

bool have_equal_bytes(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor one = a.contiguous();
  const at::Tensor other = b.contiguous();
  return one.sizes() == other.sizes() && one.scalar_type() == other.scalar_type() &&
         std::memcmp(one.data_ptr(), other.data_ptr(), one.nbytes()) == 0;
}

}  // namespace

TEST_CASE("C89: a TorchScript file gives the outputs of an evaluation, bit for bit") {
  const Trained trained;
  const std::string file = (trained.dir / "model.ts").string();
  CHECK(export_model(trained.run(), {"torchscript", 0, {}}, file).filename() == "checkpoint_6.pt");
  torch::jit::Module script = torch::jit::load(file);
  const torch::NoGradGuard no_grad;
  for (int64_t i = 0; i < 2; ++i) {
    for (int again = 0; again < 3; ++again) {  // its executor runs another graph later
      const at::Tensor logits = script.forward({trained.x[static_cast<size_t>(i)]}).toTensor();
      CHECK(have_equal_bytes(logits, trained.expected.narrow(0, 4 * i, 4)));
    }
  }
  CHECK(script.attr("3").toModule().hasattr("weight"));
}

TEST_CASE("C89: a forward pass in a file gives them too, for a batch size of its own") {
  const Trained trained;
  const std::string file = (trained.dir / "forward.step").string();
  export_model(trained.run(), {"inference-step", 4, {}}, file);
  rondo_step* const step = rondo_step_open(file.c_str());
  REQUIRE_MESSAGE(step != nullptr, rondo_step_error());
  CHECK(rondo_step_inputs(step) == 1);  // no labels
  for (int64_t i = 0; i < 2; ++i) {
    const at::Tensor x = trained.x[static_cast<size_t>(i)].contiguous();
    CHECK(rondo_step_bind(step, "x", x.data_ptr(), x.nbytes()) == 1);
    CHECK(rondo_step_run(step) == 1);
    at::Tensor logits = at::empty({4, 3});
    CHECK(rondo_step_read(step, "logits", logits.data_ptr(), logits.nbytes()) == 1);
    CHECK(have_equal_bytes(logits, trained.expected.narrow(0, 4 * i, 4)));
  }
  rondo_step_close(step);

  export_model(trained.run(), {"inference-step", 1, {}}, file);
  rondo_step* const single = rondo_step_open(file.c_str());
  REQUIRE(single != nullptr);
  rondo_tensor input;
  REQUIRE(rondo_step_input(single, 0, &input) == 1);
  CHECK(input.sizes[0] == 1);
  rondo_step_close(single);
}

TEST_CASE("safetensors have the weights by name") {
  const Trained trained;
  export_model(trained.run(), {"safetensors", 0, {}}, trained.dir / "model.safetensors");
  const StateDict weights = read_safetensors(trained.dir / "model.safetensors");
  CHECK(weights.at("3.weight").as_tensor().sizes() == at::IntArrayRef{3, 8});
  CHECK(weights.contains("1.running_mean"));
}

TEST_CASE("safetensors have the weights that evaluations see") {
  const Trained trained;
  export_model(trained.run(), {"safetensors", 0, {}}, trained.dir / "model.safetensors");
  const StateDict weights = read_safetensors(trained.dir / "model.safetensors");
  Trainer trainer(trained.options, quiet_log());
  trainer.load_checkpoint({});
  const at::Tensor raw = model_state(trainer.state().model->module()).at("3.weight").as_tensor();
  CHECK_FALSE(have_equal_bytes(weights.at("3.weight").as_tensor(), raw));
  const NamedTensors averages = trainer.callback<AverageWeights>()->captured_state();
  for (const NamedTensor& average : averages) {
    if (average.first != "share") {
      CAPTURE(average.first);
      CHECK(have_equal_bytes(weights.at(average.first).as_tensor(), average.second));
    }
  }
}

TEST_CASE("ExportForInference writes the model when a fit ends, and changes no number") {
  const Trained trained;
  TrainerOptions options = trained.options;
  options.model_dir = trained.dir / "with";
  ExportForInference::Options exports;
  options.callbacks.push_back(use<ExportForInference>(exports));
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train"), {trained.val});
  TrainerOptions plain = trained.options;
  plain.model_dir = trained.dir / "without";
  Trainer without(plain, quiet_log());
  without.fit(tiny_loader("train"), {trained.val});
  CHECK(first_difference(bits_of(trainer), bits_of(without)).empty());
  torch::jit::Module script = torch::jit::load((trained.dir / "with/model.ts").string());
  const torch::NoGradGuard no_grad;
  CHECK(have_equal_bytes(script.forward({trained.x[0]}).toTensor(),
                         trained.expected.narrow(0, 0, 4)));
}

TEST_CASE("what cannot be exported is refused by name") {
  const Trained trained;
  const auto refusal_of = [&](const ExportOptions& options) -> std::string {
    try {
      export_model(trained.run(), options, trained.dir / "out");
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(refusal_of({"onnx", 0, {}}).find("torchscript") != std::string::npos);
  CHECK(refusal_of({"torchscript", 0, {"logit"}}).find("logits") != std::string::npos);
  RunConfig untrained = trained.run();
  untrained.init.model_dir = trained.dir / "nothing";
  CHECK_THROWS_AS(export_model(untrained, {}, trained.dir / "out"), ConfigError);
}

TEST_SUITE_END();
