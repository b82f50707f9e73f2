#include "models/module_model.h"

#include <torch/nn/functional/loss.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <doctest/doctest.h>

using namespace rondo;

TEST_SUITE_BEGIN("models/module_model");

namespace {

struct TwoLayer final : ModuleModel {
  struct Options {
    int64_t width = 8;
  };

  explicit TwoLayer(const Options& o) : in(4, o.width), out(o.width, 2) {
    register_module("in", in);
    register_module("out", out);
  }

  Outputs forward(const Batch& batch) override {
    auto logits = out(torch::relu(in(batch["image"].flatten(1))));
    return {{"loss", torch::nn::functional::cross_entropy(logits, batch["label"])},
            {"logits", logits}};
  }

  torch::nn::Linear in, out;
};

}  // namespace

TEST_CASE("a model held by unique_ptr works as the module that it is") {
  const std::unique_ptr<Model> model = use<TwoLayer>({16}).make();
  torch::nn::Module& module = model->module();
  CHECK(&module == &model->module());
  std::vector<std::string> names;
  for (const auto& item : module.named_parameters()) {
    names.push_back(item.key());
  }
  CHECK((names == std::vector<std::string>{"in.weight", "in.bias", "out.weight", "out.bias"}));
  module.eval();
  CHECK(!dynamic_cast<TwoLayer&>(*model).in->is_training());
  module.train();
  CHECK(dynamic_cast<TwoLayer&>(*model).in->is_training());
  module.to(torch::kDouble);
  const Outputs outputs = model->forward(
      {{"image", torch::rand({3, 2, 2}, torch::kDouble)}, {"label", torch::tensor({0, 1, 1})}});
  CHECK((outputs["loss"].scalar_type() == torch::kDouble));
  outputs["loss"].backward();
  CHECK(module.named_parameters()["in.weight"].grad().defined());
  module.zero_grad();
  CHECK(module.modules(/*include_self=*/false).size() == 2);
}

TEST_SUITE_END();
