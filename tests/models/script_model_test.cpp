#include "models/builtin/script_model.h"

#include <doctest/doctest.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/nn/module.h>
#include <torch/script.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <fstream>

#include "core/error.h"
#include "metrics/metric.h"
#include "models/model_checks.h"
#include "support/temp_dir.h"

using namespace rondo;

TEST_SUITE_BEGIN("models/script_model");

namespace {

/// A linear layer "body.layer", a buffer "body.scale" and dropout, in a TorchScript file.
std::filesystem::path write_script(const test::TempDir& dir, const std::string& dropout) {
  torch::manual_seed(3);
  torch::jit::Module layer("Layer");
  layer.register_attribute("training", c10::BoolType::get(), true);
  layer.register_parameter("weight", torch::randn({3, 4}).requires_grad_(), /*is_buffer=*/false);
  layer.register_parameter("bias", torch::zeros({3}).requires_grad_(), /*is_buffer=*/false);
  layer.define("def forward(self, x):\n    return torch.addmm(self.bias, x, self.weight.t())\n");
  torch::jit::Module body("Body");
  body.register_attribute("training", c10::BoolType::get(), true);
  body.register_module("layer", layer);
  body.register_buffer("scale", torch::full({1}, 2.0));
  body.define("def forward(self, x):\n    return self.layer.forward(x) * self.scale\n");
  torch::jit::Module root("Root");
  root.register_attribute("training", c10::BoolType::get(), true);
  root.register_module("body", body);
  root.define("def forward(self, x):\n    return self.body.forward(torch.dropout(x, " + dropout +
              ", self.training))\n");
  const std::filesystem::path path = dir / "model.pt";
  root.save(path.string());
  return path;
}

/// A script whose forward returns this expression of its input `x`.
std::filesystem::path write_returning(const test::TempDir& dir, const std::string& expression) {
  torch::jit::Module root("Root");
  root.register_attribute("training", c10::BoolType::get(), true);
  root.register_parameter("unused", torch::zeros({1}), /*is_buffer=*/false);
  root.define("def forward(self, x):\n    return " + expression + "\n");
  const std::filesystem::path path = dir / "returning.pt";
  root.save(path.string());
  return path;
}

}  // namespace

TEST_CASE("learns from images, however often it is called") {
  const test::TempDir dir;
  const auto path = write_script(dir, "0.0");
  test::check_model(use<ScriptModel>({path}), test::image_batch({8, 4}, 3), "label", 0.1);
}

TEST_CASE("its tensors are those of the script, under the script's names") {
  const test::TempDir dir;
  ScriptModel model({write_script(dir, "0.0")});
  auto parameters = model.module().named_parameters();
  REQUIRE(parameters.size() == 2);
  REQUIRE(parameters.contains("body.layer.weight"));
  REQUIRE(parameters.contains("body.layer.bias"));
  REQUIRE(model.module().named_buffers().contains("body.scale"));
  const torch::NoGradGuard no_grad;
  parameters["body.layer.weight"].zero_();
  parameters["body.layer.bias"].fill_(1.0);
  model.module().named_buffers()["body.scale"].fill_(3.0);
  const auto image = torch::rand({2, 4});
  CHECK(model.forward({{"image", image}})["logits"].equal(torch::full({2, 3}, 3.0)));
  model.module().to(torch::kDouble);
  const auto logits = model.forward({{"image", image.to(torch::kDouble)}})["logits"];
  CHECK(logits.equal(torch::full({2, 3}, 3.0, torch::kDouble)));
}

TEST_CASE("train and eval mode reach the script") {
  const test::TempDir dir;
  ScriptModel model({write_script(dir, "0.5")});
  test::check_dropout(model, test::image_batch({8, 4}, 3));
}

TEST_CASE("the loss is what was asked for") {
  const test::TempDir dir;
  const auto path = write_script(dir, "0.0");
  const auto image = torch::rand({2, 4});
  ScriptModel regression({path, {"image"}, {"logits"}, "mse", "y"});
  REQUIRE(regression.metrics().size() == 1);
  CHECK(regression.metrics()[0].make()->name() == "mean_squared_error");
  const auto y = torch::rand({2, 3});
  const Outputs outputs = regression.forward({{"image", image}, {"y", y}});
  CHECK(outputs["loss"].equal(torch::mse_loss(outputs["logits"], y)));
  ScriptModel silent({path, {"image"}, {"logits"}, "none"});
  CHECK(silent.forward(test::image_batch({2, 4}, 3)).find("loss") == nullptr);
  ScriptModel classifier({path});
  REQUIRE(classifier.metrics().size() == 1);
  CHECK(classifier.metrics()[0].make()->name() == "accuracy");
}

TEST_CASE("a tuple, a list and a dictionary become named outputs") {
  const test::TempDir dir;
  const Batch batch = {{"image", torch::rand({2, 4})}, {"label", torch::tensor({0, 1})}};

  struct Form {
    const char* returned;
    std::vector<std::string> outputs;
  };

  const Form forms[] = {{"(x * 2, x.sum())", {"logits", "total"}},
                        {"[x * 2, x.sum()]", {"logits", "total"}},
                        {"{\"logits\": x * 2, \"total\": x.sum()}", {"unused"}}};
  for (const Form& form : forms) {
    CAPTURE(form.returned);
    ScriptModel model({write_returning(dir, form.returned), {"image"}, form.outputs});
    const Outputs outputs = model.forward(batch);
    CHECK(outputs["logits"].equal(batch["image"] * 2));
    CHECK(outputs["total"].equal(batch["image"].sum()));
    CHECK(outputs.find("loss") != nullptr);
  }
}

TEST_CASE("a script may return its own loss") {
  const test::TempDir dir;
  const auto path = write_returning(dir, "(x * 2, x.square().mean())");
  ScriptModel model({path, {"image"}, {"scores", "loss"}, "none"});
  const auto image = torch::rand({2, 4});
  CHECK(model.forward({{"image", image}})["loss"].equal(image.square().mean()));
  CHECK(model.metrics().empty());
}

TEST_CASE("what a script returns must fit its outputs") {
  const test::TempDir dir;
  const Batch batch = {{"image", torch::rand({2, 4})}, {"label", torch::tensor({0, 1})}};
  const auto pair = write_returning(dir, "(x, x)");
  CHECK_THROWS_AS(ScriptModel({pair}).forward(batch), UsageError);
  CHECK_THROWS_AS(ScriptModel({pair, {"image"}, {"a", "b"}}).forward(batch), UsageError);
  const auto number = write_returning(dir, "3");
  CHECK_THROWS_AS(ScriptModel({number}).forward(batch), UsageError);
}

TEST_CASE("what cannot be loaded is said so") {
  const test::TempDir dir;
  CHECK_THROWS_AS(ScriptModel({dir / "absent.pt"}), IoError);
  std::ofstream(dir / "broken.pt") << "not a script";
  CHECK_THROWS_AS(ScriptModel({dir / "broken.pt"}), DataError);
  CHECK_THROWS_AS(ScriptModel({}), UsageError);
  CHECK_THROWS_AS(ScriptModel({dir / "absent.pt", {}}), UsageError);
  CHECK_THROWS_AS(ScriptModel({dir / "absent.pt", {"image"}, {}}), UsageError);
  CHECK_THROWS_AS(ScriptModel({dir / "absent.pt", {"image"}, {"logits"}, "hinge"}), UsageError);
}

TEST_SUITE_END();
