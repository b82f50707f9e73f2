#include "callbacks/loss_accum_callback.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <algorithm>
#include <string>
#include <vector>

#include "data/tensor_dataset.h"
#include "models/mlp.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

TrainerOptions options_of(const TempDir& dir, const char* mode) {
  Mlp::Options mlp;
  mlp.sizes = {4, 3};
  mlp.input = "x";
  TrainerOptions options = tiny_options(dir / "run");
  options.model = use<Mlp>(mlp);
  options.backend.mode = mode;
  return options;
}

LoaderOptions batches_of_four() {
  LoaderOptions options;
  options.batch_size = 4;
  return options;
}

}  // namespace

TEST_SUITE_BEGIN("callbacks/loss_accum_callback");

TEST_CASE("validations without the model's target are warned of once, with what the batch has") {
  const TempDir dir;
  std::vector<std::string> lines;
  Trainer trainer(options_of(dir, "eager"), quiet_log(&lines));
  const DataLoader val("val", from_tensors({{"x", at::ones({8, 4})}, {"labels", at::ones({8})}}));
  CHECK(trainer.validate(val).empty());
  CHECK(trainer.validate(val).empty());
  const auto is_of_target = [](const std::string& line) {
    return line.find("\"x\" Float[1, 4], \"labels\" Float[1]") != std::string::npos;
  };
  CHECK(std::count_if(lines.begin(), lines.end(), is_of_target) == 1);
}

TEST_CASE("accuracy leaves out what the loss ignores, traced as eager") {
  at::Tensor label = at::arange(16).remainder(3);
  label.slice(0, 4, 9).fill_(-100);
  const at::Tensor x = at::arange(64, at::kFloat).sin().reshape({16, 4});
  std::vector<double> accuracies;
  for (const char* mode : {"eager", "traced"}) {
    const TempDir dir;
    Trainer trainer(options_of(dir, mode), quiet_log());
    const Metrics metrics = trainer.validate(
        DataLoader("val", from_tensors({{"x", x}, {"label", label}}), batches_of_four()));
    const at::Tensor guess =
        trainer.predict(DataLoader(from_tensors({{"x", x}})))["logits"].argmax(-1);
    const double right = guess.eq(label).sum().item<double>();
    accuracies.push_back(*metrics.number("val/accuracy"));
    CHECK(accuracies.back() == right / 11.0);
  }
  CHECK(accuracies[0] == accuracies[1]);
}

TEST_SUITE_END();
