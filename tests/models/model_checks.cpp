#include "models/model_checks.h"

#include <torch/nn/module.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <doctest/doctest.h>

namespace rondo::test {

namespace {

constexpr uint64_t kSeed = 11;

std::unique_ptr<Model> make_seeded(const Factory<Model>& factory) {
  torch::manual_seed(kSeed);
  return factory.make();
}

void check_gradients(Model& model, const Batch& batch) {
  const at::Tensor loss = model.forward(batch)["loss"];
  CHECK(loss.dim() == 0);
  CHECK(loss.is_floating_point());
  CHECK(std::isfinite(loss.item<double>()));
  loss.backward();
  for (const auto& item : model.module().named_parameters()) {
    CAPTURE(item.key());
    REQUIRE(item.value().grad().defined());
    CHECK(item.value().grad().isfinite().all().item<bool>());
    CHECK(item.value().grad().abs().sum().item<double>() > 0.0);
  }
}

void check_learns(Model& model, const Batch& batch, double lr) {
  constexpr int kSteps = 30;
  torch::optim::SGD optimizer(model.module().parameters(), lr);
  const double first = model.forward(batch)["loss"].item<double>();
  for (int i = 0; i < kSteps; ++i) {
    optimizer.zero_grad();
    model.forward(batch)["loss"].backward();
    optimizer.step();
  }
  CHECK(model.forward(batch)["loss"].item<double>() < 0.8 * first);
}

}  // namespace

void check_model(const Factory<Model>& factory,
                 const Batch& batch,
                 const std::string& target,
                 double lr) {
  const auto model = make_seeded(factory);
  const auto twin = make_seeded(factory);
  const auto parameters = model->module().named_parameters();
  REQUIRE(!parameters.is_empty());
  for (const auto& item : parameters) {
    CAPTURE(item.key());
    CHECK(item.value().equal(twin->module().named_parameters()[item.key()]));
  }
  Batch unlabelled;
  for (const auto& item : batch.items()) {
    if (item.first != target) {
      unlabelled.set(item.first, item.second);
    }
  }
  model->module().eval();
  const Outputs outputs = model->forward(unlabelled);
  CHECK(outputs.find("loss") == nullptr);
  const std::string name = outputs.items().front().first;  // "logits" or "prediction"
  CHECK(outputs[name].equal(model->forward(batch)[name]));
  model->module().train();
  check_gradients(*model, batch);
  check_learns(*twin, batch, lr);
}

void check_dropout(Model& model, const Batch& batch) {
  const auto logits = [&] { return model.forward(batch)["logits"].detach(); };
  model.module().train();
  CHECK(!logits().equal(logits()));
  model.module().eval();
  CHECK(logits().equal(logits()));
}

Batch image_batch(at::IntArrayRef shape, int64_t classes) {
  torch::manual_seed(kSeed);
  return {{"image", torch::rand(shape)}, {"label", torch::randint(classes, {shape[0]}, at::kLong)}};
}

Batch token_batch(int64_t batch, int64_t context, int64_t vocabulary) {
  torch::manual_seed(kSeed);
  return {{"tokens", torch::randint(vocabulary, {batch, context}, at::kLong)},
          {"targets", torch::randint(vocabulary, {batch, context}, at::kLong)}};
}

}  // namespace rondo::test
