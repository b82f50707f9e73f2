#include "docs/owned_state.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_file.h"
#include "core/error.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"

using namespace rondo;
using namespace rondo::test;

namespace fs = std::filesystem;

TEST_SUITE_BEGIN("docs/owned_state");

namespace {

TrainerOptions options_of(const fs::path& model_dir, const std::string& mode) {
  TrainerOptions options = tiny_options(model_dir);
  options.backend.mode = mode;
  options.loop.max_steps = 12;
  options.loop.eval_frequency = 4;
  options.checkpoint.steps = 6;
  options.callbacks = {
      use<WeightAverage>(), use<InputNormaliser>(), use<StepCounter>().labelled("steps-made")};
  return options;
}

DataLoader train() {
  return tiny_loader("train", 24, 2);
}

StateDict fit(const TrainerOptions& options) {
  Trainer trainer(options, quiet_log());
  trainer.fit(train(), {tiny_loader("val", 4)});
  StateDict bits = bits_of(trainer);
  bits.set("callbacks", read_checkpoint(options.model_dir / "checkpoint_12.pt").at("callbacks"));
  return bits;
}

/// A counter that replaces its tensor where it should write it.
class Replacing final : public Callback {
 public:
  NamedTensors captured_state() override { return {{"steps", steps_}}; }

  void on_train_step_end(Trainer&, Model&, const Outputs&, const Batch&) override {
    steps_ = steps_ + 1;
  }

 private:
  at::Tensor steps_ = at::zeros({}, at::kLong);
};

}  // namespace

TEST_CASE("tensors of callbacks are written by the step: traced equals eager, also when resumed") {
  const TempDir dir;
  const StateDict eager = fit(options_of(dir / "eager", "eager"));
  const StateDict& states = eager.at("callbacks").as_dict();
  CHECK(states.at("steps-made/steps").as_int() == 12);
  CHECK(states.at("InputNormaliser/mean").as_tensor().abs().sum().item<float>() > 0.0F);
  CHECK(states.at("WeightAverage").as_dict().size() == 2);
  for (const std::string mode : {"traced", "eager"}) {
    CAPTURE(mode);
    CHECK(first_difference(eager, fit(options_of(dir / (mode + "_whole").c_str(), mode))) == "");
    TrainerOptions options = options_of(dir / (mode + "_resumed").c_str(), mode);
    {
      TrainerOptions first = options;
      first.loop.max_steps = 6;
      Trainer trainer(first, quiet_log());
      trainer.fit(train(), {tiny_loader("val", 4)});
    }
    CHECK(first_difference(eager, fit(options)) == "");
  }
}

TEST_CASE("a load writes the tensors of callbacks in place, all of them or none") {
  const TempDir dir;
  fit(options_of(dir / "run", "eager"));
  const fs::path file = dir / "run/checkpoint_12.pt";
  Trainer trainer(options_of(dir / "other", "eager"), quiet_log());
  auto& counter = *trainer.callback<StepCounter>();
  const at::Tensor steps = counter.captured_state()[0].second;
  SUBCASE("what fits") {
    trainer.load_checkpoint(file);
    CHECK(steps.item<int64_t>() == 12);
    CHECK(counter.captured_state()[0].second.is_same(steps));
  }
  SUBCASE("what does not") {
    StateDict state = read_checkpoint(file);
    state.find("callbacks/steps-made")->as_dict().set("steps", at::zeros({2}, at::kLong));
    write_checkpoint(*real_file_system(), dir / "broken.pt", state);
    const at::Tensor mean = trainer.callback<InputNormaliser>()->captured_state()[0].second;
    std::string text;
    try {
      trainer.load_checkpoint(dir / "broken.pt");
    } catch (const Error&) {
      text = describe(std::current_exception());
    }
    CHECK(text.find("steps-made") != std::string::npos);
    CHECK(text.find("Long[2]") != std::string::npos);
    CHECK(steps.item<int64_t>() == 0);
    CHECK(mean.abs().sum().item<float>() == 0.0F);
  }
}

TEST_CASE("a callback that replaces its tensor is told to write it in place") {
  const TempDir dir;
  TrainerOptions options = options_of(dir / "run", "traced");
  options.callbacks = {use<Replacing>()};
  std::string text;
  try {
    Trainer(options, quiet_log()).fit(train());
  } catch (const Error&) {
    text = describe(std::current_exception());
  }
  CHECK(text.find("callbacks/Replacing/steps") != std::string::npos);
  CHECK(text.find("copy_") != std::string::npos);
}

TEST_SUITE_END();
