#include "callbacks/builtin/normalize_inputs.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include "core/error.h"
#include "data/tensor_dataset.h"
#include "models/builtin/mlp.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

TrainerOptions normalized_options(const std::filesystem::path& dir, const std::string& mode) {
  Mlp::Options mlp;
  mlp.sizes = {3, 2};
  mlp.input = "x";
  NormalizeInputs::Options normalize;
  normalize.input = "x";
  normalize.shape = {3};
  TrainerOptions options = tiny_options(dir);
  options.model = use<Mlp>(mlp);
  options.backend.mode = mode;
  options.loop.max_steps = 12;
  options.checkpoint.steps = 6;
  options.callbacks = {use<NormalizeInputs>(normalize)};
  return options;
}

const at::Tensor kX = at::arange(36, at::kFloat).mul(1.7).sin().reshape({12, 3}) *
                          torch::tensor({1.0F, 100.0F, 0.01F}) +
                      torch::tensor({50.0F, 0.0F, -3.0F});

DataLoader rows(const char* label) {
  LoaderOptions loader;
  loader.batch_size = 4;
  return DataLoader(
      label, from_tensors({{"x", kX}, {"label", at::arange(12).remainder(2)}}), loader);
}

StateDict fit(const TrainerOptions& options) {
  Trainer trainer(options, quiet_log());
  trainer.fit(rows("train"));
  return bits_of(trainer);
}

}  // namespace

TEST_SUITE_BEGIN("callbacks/builtin/normalize_inputs");

TEST_CASE("running statistics are part of the step: traced equals eager, also when resumed") {
  const TempDir dir;
  const StateDict eager = fit(normalized_options(dir / "eager", "eager"));
  CHECK(first_difference(eager, fit(normalized_options(dir / "traced", "traced"))) == "");
  TrainerOptions resumed = normalized_options(dir / "resumed", "traced");
  resumed.checkpoint.load.path = dir / "eager/checkpoint_6.pt";
  CHECK(first_difference(eager, fit(resumed)) == "");
}

TEST_CASE("the statistics are those of all that was seen") {
  const TempDir dir;
  TrainerOptions options = normalized_options(dir / "run", "traced");
  Trainer trainer(options, quiet_log());
  trainer.fit(rows("train"));  // four passes
  auto* const normalize = trainer.callback<NormalizeInputs>();
  const NamedTensors state = normalize->captured_state();
  const at::Tensor x = kX.to(at::kDouble);
  CHECK(state[0].second.item<double>() == 48);
  CHECK(torch::allclose(state[1].second, x.mean(0)));
  CHECK(torch::allclose(state[2].second / 48, x.var(0, /*unbiased=*/false)));
  const at::Tensor before = state[1].second.clone();
  trainer.validate(rows("val"));
  CHECK(torch::equal(before, normalize->captured_state()[1].second));
}

TEST_CASE("a shape that the input does not have is told") {
  const TempDir dir;
  TrainerOptions options = normalized_options(dir / "run", "eager");
  NormalizeInputs::Options normalize;
  normalize.input = "x";
  normalize.shape = {4};
  options.callbacks = {use<NormalizeInputs>(normalize)};
  Trainer trainer(options, quiet_log());
  CHECK_THROWS_AS(trainer.fit(rows("train")), Error);
  normalize.shape = {0};
  CHECK_THROWS_AS(NormalizeInputs{normalize}, UsageError);
  CHECK_THROWS_AS(NormalizeInputs{NormalizeInputs::Options{}}, UsageError);
}

TEST_SUITE_END();
