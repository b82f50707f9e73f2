#include "callbacks/builtin/selective_grad.h"

#include <doctest/doctest.h>
#include <torch/nn/module.h>
#include <torch/types.h>

#include <string>
#include <utility>

#include "checkpoint/checkpoint_file.h"
#include "core/error.h"
#include "optim/adam.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

TrainerOptions selective_options(const std::filesystem::path& model_dir,
                                 const char* mode,
                                 const SelectiveGrad::Options& selective) {
  TrainerOptions options = tiny_options(model_dir);
  options.backend.mode = mode;
  options.optimizer = use<Adam>({1e-2});
  options.callbacks = {use<SelectiveGrad>(selective)};
  options.loop.grad_accum_steps = 2;
  options.loop.eval_frequency = 0;
  return options;
}

}  // namespace

TEST_SUITE_BEGIN("callbacks/builtin/selective_grad");

TEST_CASE("SelectiveGrad trains its share of a weight's elements, and all of the bias") {
  for (const auto& [mode, dtype] : {std::pair("eager", "fp32"),
                                    std::pair("traced", "fp32"),
                                    std::pair("traced", "bf16_pure")}) {
    for (const char* method : {"random", "topk"}) {
      CAPTURE(mode);
      CAPTURE(dtype);
      CAPTURE(method);
      const TempDir dir;
      SelectiveGrad::Options selective;
      selective.share = 0.25;
      selective.init_method = method;
      TrainerOptions options = selective_options(dir / "run", mode, selective);
      options.loop.max_steps = 8;
      options.precision.dtype = dtype;
      options.precision.on_unsupported = "emulate";
      Trainer trainer(options, quiet_log());
      const auto parameters = trainer.state().model->module().parameters();
      const at::Tensor weight = parameters[0].detach().clone();
      const at::Tensor bias = parameters[1].detach().clone();
      trainer.fit(tiny_loader("train"));
      const at::Tensor moved = parameters[0].detach().ne(weight);
      CHECK(moved.sum().item<int64_t>() == 3);  // of 3 x 4
      CHECK(parameters[1].detach().ne(bias).all().item<bool>());
      if (std::string(method) == "topk") {
        const double least = weight.abs().masked_select(moved).min().item<double>();
        const double most = weight.abs().masked_select(~moved).max().item<double>();
        CHECK(least >= most);
      }
    }
  }
}

TEST_CASE("SelectiveGrad: traced equals eager and resumed equals unstopped, bit for bit") {
  const TempDir dir;
  const auto after = [&](const std::string& name, const char* mode, int64_t updates) {
    TrainerOptions options = selective_options(dir.path() / name, mode, {});
    options.loop.max_steps = updates;
    Trainer trainer(options, quiet_log());
    trainer.fit(tiny_loader("train"));
    return bits_of(trainer);
  };
  const StateDict eager = after("eager", "eager", 9);
  CHECK(first_difference(eager, after("traced", "traced", 9)) == "");
  after("resumed", "traced", 4);
  CHECK(first_difference(eager, after("resumed", "traced", 9)) == "");
}

TEST_CASE("SelectiveGrad says which option is wrong") {
  const TempDir dir;
  SelectiveGrad::Options none;
  none.params = {"head*"};
  CHECK_THROWS_AS(Trainer(selective_options(dir / "none", "eager", none), quiet_log()), Error);
  SelectiveGrad::Options too_much;
  too_much.share = 1.5;
  CHECK_THROWS_AS(SelectiveGrad{too_much}, UsageError);
  SelectiveGrad::Options unknown;
  unknown.init_method = "best";
  CHECK_THROWS_AS(SelectiveGrad{unknown}, UsageError);
}

TEST_SUITE_END();
