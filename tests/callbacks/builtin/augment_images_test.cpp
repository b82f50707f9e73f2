#include "callbacks/builtin/augment_images.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <string>

#include "core/error.h"
#include "data/tensor_dataset.h"
#include "models/builtin/mlp.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

TrainerOptions options_of(const std::filesystem::path& dir, const std::string& mode) {
  Mlp::Options mlp;
  mlp.sizes = {36, 3};
  AugmentImages::Options augment;
  augment.flip = 0.5;
  augment.shift = 1;
  augment.brightness = 0.2;
  augment.contrast = 0.2;
  augment.erase = 0.3;
  TrainerOptions options = tiny_options(dir);
  options.model = use<Mlp>(mlp);
  options.backend.mode = mode;
  options.loop.max_steps = 12;
  options.checkpoint.steps = 6;
  options.callbacks = {use<AugmentImages>(augment)};
  return options;
}

DataLoader pictures(const char* label) {
  LoaderOptions loader;
  loader.batch_size = 4;
  const at::Tensor image = at::arange(12 * 36, at::kFloat).sin().reshape({12, 1, 6, 6});
  return DataLoader(
      label, from_tensors({{"image", image}, {"label", at::arange(12).remainder(3)}}), loader);
}

}  // namespace

TEST_SUITE_BEGIN("callbacks/builtin/augment_images");

TEST_CASE("training pictures change in the step: traced equals eager, also when resumed") {
  const TempDir dir;
  const auto fit = [](const TrainerOptions& options) {
    Trainer trainer(options, quiet_log());
    trainer.fit(pictures("train"));
    return bits_of(trainer);
  };
  const StateDict eager = fit(options_of(dir / "eager", "eager"));
  CHECK(first_difference(eager, fit(options_of(dir / "traced", "traced"))) == "");
  TrainerOptions resumed = options_of(dir / "resumed", "traced");
  resumed.checkpoint.load.path = dir / "eager/checkpoint_6.pt";
  CHECK(first_difference(eager, fit(resumed)) == "");
  TrainerOptions plain = options_of(dir / "plain", "eager");
  plain.callbacks = {};
  CHECK(first_difference(eager, fit(plain)) != "");
}

TEST_CASE("a validation sees pictures as they are") {
  const TempDir dir;
  TrainerOptions options = options_of(dir / "run", "eager");
  Trainer with(options, quiet_log());
  options.callbacks = {};
  Trainer without(options, quiet_log());
  CHECK(with.validate(pictures("val")).number("val/loss") ==
        without.validate(pictures("val")).number("val/loss"));
}

TEST_CASE("options out of their range are refused") {
  AugmentImages::Options options;
  options.flip = 1.5;
  CHECK_THROWS_AS(AugmentImages{options}, UsageError);
  options.flip = 0;
  options.shift = -1;
  CHECK_THROWS_AS(AugmentImages{options}, UsageError);
}

TEST_SUITE_END();
