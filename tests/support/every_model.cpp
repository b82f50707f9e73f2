#include "support/every_model.h"

#include <filesystem>

#include "data/tensor_dataset.h"
#include "models/models.h"
#include "support/generated_data.h"
#include "support/temp_dir.h"

#include <torch/csrc/jit/api/module.h>
#include <torch/script.h>
#include <torch/types.h>
#include <torch/utils.h>

namespace rondo::test {

namespace {

Factory<DataSource> tokens() {
  return from_tensors(
      {{"tokens", integers({12, 6}, 11, 1)}, {"targets", integers({12, 6}, 11, 2)}});
}

Factory<Model> mlp(double dropout) {
  Mlp::Options options;
  options.sizes = {64, 16, 10};
  options.dropout = dropout;
  return use<Mlp>(options);
}

Factory<Model> cnn(double dropout) {
  Cnn::Options options;
  options.image_size = 8;
  options.widths = {3, 5};
  options.dropout = dropout;
  return use<Cnn>(options);
}

Factory<Model> gpt(double dropout) {
  Gpt::Options options;
  options.layers = 1;
  options.heads = 2;
  options.width = 8;
  options.context = 6;
  options.vocabulary = 11;
  options.dropout = dropout;
  return use<Gpt>(options);
}

Factory<Model> lstm(double dropout) {
  Lstm::Options options;
  options.vocabulary = 11;
  options.width = 6;
  options.layers = 2;
  options.dropout = dropout;
  return use<Lstm>(options);
}

Factory<Model> resnet(double) {
  ResNet::Options options;
  options.blocks = 1;
  options.width = 4;
  return use<ResNet>(options);
}

/// A TorchScript file with two layers and dropout, which returns a tuple.
Factory<Model> script(double dropout) {
  static const TempDir dir;
  const std::filesystem::path path = dir / (dropout > 0.0 ? "dropout.pt" : "plain.pt");
  torch::manual_seed(3);
  torch::jit::Module root("Root");
  root.register_attribute("training", c10::BoolType::get(), true);
  root.register_parameter(
      "first", (torch::randn({64, 16}) * 0.1).requires_grad_(), /*is_buffer=*/false);
  root.register_parameter(
      "second", (torch::randn({16, 10}) * 0.1).requires_grad_(), /*is_buffer=*/false);
  root.define(
      "def forward(self, x):\n"
      "    h = torch.relu(torch.mm(torch.flatten(x, 1), self.first))\n"
      "    h = torch.dropout(h, " +
      std::to_string(dropout) +
      ", self.training)\n"
      "    return (torch.mm(h, self.second), h)\n");
  root.save(path.string());
  ScriptModel::Options options;
  options.path = path;
  options.outputs = {"logits", "hidden"};
  return use<ScriptModel>(options);
}

Factory<Model> table_mlp(double dropout) {
  TableMlp::Options options;
  options.features = 3;
  options.categories = std::vector<int64_t>{4, 3};
  options.classes = 3;
  options.targets = 0;
  options.hidden = {8, 8};
  options.dropout = dropout;
  return use<TableMlp>(options);
}

Factory<DataSource> table_rows() {
  return from_tensors({{"features", uniform({12, 3})},
                       {"categories", integers({12, 2}, 3, 1)},
                       {"weight", uniform({12})},
                       {"label", integers({12}, 3, 2)}});
}

Factory<Model> gru(double dropout) {
  Gru::Options options;
  options.vocabulary = 11;
  options.width = 6;
  options.layers = 2;
  options.dropout = dropout;
  return use<Gru>(options);
}

/// Llama's parts: the other choice of everything that a Gpt is made of.
Factory<Model> llama(double dropout) {
  Gpt::Options options;
  options.layers = 1;
  options.heads = 4;
  options.kv_heads = 2;
  options.width = 16;
  options.context = 6;
  options.vocabulary = 11;
  options.dropout = dropout;
  options.positions = "rotary";
  options.norm = "rms";
  options.activation = "swiglu";
  options.bias = false;
  options.tied = true;
  return use<Gpt>(options);
}

Factory<Model> deep_resnet(double) {
  DeepResNet::Options options;
  options.width = 2;
  options.stem = "cifar";
  return use<DeepResNet>(options);
}

Factory<Model> mobile_net(double dropout) {
  MobileNet::Options options;
  options.width = 0.1;
  options.stem = "cifar";
  options.dropout = dropout;
  return use<MobileNet>(options);
}

Factory<Model> vit(double dropout) {
  Vit::Options options;
  options.image_size = 8;
  options.layers = 1;
  options.heads = 2;
  options.width = 8;
  options.dropout = dropout;
  return use<Vit>(options);
}

Factory<Model> u_net(double) {
  UNet::Options options;
  options.classes = 4;
  options.width = 4;
  options.depth = 1;
  return use<UNet>(options);
}

Factory<DataSource> masks() {
  return from_tensors({{"image", uniform({12, 1, 8, 8})}, {"mask", integers({12, 8, 8}, 4, 3)}});
}

Factory<Model> forecaster(double dropout) {
  Forecaster::Options options;
  options.layers = 2;
  options.width = 6;
  options.horizon = 2;
  options.dropout = dropout;
  return use<Forecaster>(options);
}

Factory<DataSource> series() {
  return from_tensors({{"series", uniform({12, 9})}, {"target", uniform({12, 2})}});
}

Factory<Model> autoencoder(double) {
  Autoencoder::Options options;
  options.sizes = {64, 16, 4};
  return use<Autoencoder>(options);
}

Factory<Model> vae(double) {
  Vae::Options options;
  options.sizes = {64, 16, 4};
  return use<Vae>(options);
}

Factory<Model> diffusion(double) {
  Diffusion::Options options;
  options.image_size = 8;
  options.width = 8;
  options.depth = 1;
  options.steps = 10;
  return use<Diffusion>(options);
}

}  // namespace

const std::vector<ModelOnData>& every_model() {
  static const std::vector<ModelOnData> all = {
      {"Mlp", mlp, [] { return images(1, 8); }, true},
      {"Cnn", cnn, [] { return images(1, 8); }, true},
      {"ResNet", resnet, [] { return images(3, 8); }, true},
      {"Lstm", lstm, tokens, true},
      {"Gpt", gpt, tokens, true},
      {"ScriptModel", script, [] { return images(1, 8); }, true},
      {"TableMlp", table_mlp, table_rows, true},
      {"Gru", gru, tokens},
      {"Gpt", llama, tokens},
      {"DeepResNet", deep_resnet, [] { return images(3, 8); }},
      {"MobileNet", mobile_net, [] { return images(3, 8); }},
      {"Vit", vit, [] { return images(3, 8); }},
      {"UNet", u_net, masks},
      {"Forecaster", forecaster, series},
      {"Autoencoder", autoencoder, [] { return images(1, 8); }},
      {"Vae", vae, [] { return images(1, 8); }},
      {"Diffusion", diffusion, [] { return images(1, 8); }},
  };
  return all;
}

}  // namespace rondo::test
