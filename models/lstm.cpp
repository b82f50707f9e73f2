#include "models/lstm.h"

#include <ATen/ops/dropout.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <limits>
#include <vector>

#include "core/require.h"
#include "metrics/token_loss.h"
#include "models/internal/classify.h"
#include "models/internal/next_token.h"
#include "models/module_model.h"
#include "models/register.h"

namespace rondo {

namespace {

Lstm::Options validated(const Lstm::Options& options) {
  detail::require(options.layers >= 1, "Lstm: layers", ">= 1", options.layers);
  detail::require(options.width >= 1, "Lstm: width", ">= 1", options.width);
  detail::require(options.vocabulary >= 1, "Lstm: vocabulary", ">= 1", options.vocabulary);
  detail::require(
      options.dropout >= 0 && options.dropout < 1, "Lstm: dropout", "in [0, 1)", options.dropout);
  return options;
}

class Network final : public ModuleModel {
 public:
  explicit Network(const Lstm::Options& options);

  Outputs forward(const Batch& batch) override;
  std::vector<Factory<Metric>> metrics() const override;

 private:
  struct Layer {
    torch::nn::Linear input;   // to the gates, in the order input, forget, cell, output
    torch::nn::Linear hidden;  // to the gates, without a bias
  };

  static at::Tensor run_layer(Layer& layer, const at::Tensor& input);

  Lstm::Options options_;
  torch::nn::Embedding embedding_;
  std::vector<Layer> layers_;
  torch::nn::Linear head_;
};

Network::Network(const Lstm::Options& options)
    : options_(validated(options)),
      embedding_(options.vocabulary, options.width),
      head_(options.width, options.vocabulary) {
  register_module("embedding", embedding_);
  const int64_t gates = 4 * options.width;
  for (int64_t i = 0; i < options.layers; ++i) {
    const std::string index = std::to_string(i);
    const auto hidden = torch::nn::LinearOptions(options.width, gates).bias(false);
    layers_.push_back({register_module("input" + index, torch::nn::Linear(options.width, gates)),
                       register_module("hidden" + index, torch::nn::Linear(hidden))});
  }
  register_module("head", head_);
}

at::Tensor Network::run_layer(Layer& layer, const at::Tensor& input) {
  const at::Tensor from_input = layer.input(input);  // of all steps at once: [B, T, 4 · width]
  at::Tensor hidden = at::zeros_like(input.select(1, 0));
  at::Tensor cell = hidden;
  std::vector<at::Tensor> steps;
  for (int64_t t = 0; t < input.size(1); ++t) {
    const at::Tensor sum = from_input.select(1, t) + layer.hidden(hidden);
    const std::vector<at::Tensor> gates = sum.chunk(4, 1);
    cell = gates[1].sigmoid() * cell + gates[0].sigmoid() * gates[2].tanh();
    hidden = gates[3].sigmoid() * cell.tanh();
    steps.push_back(hidden);
  }
  return at::stack(steps, 1);
}

Outputs Network::forward(const Batch& batch) {
  const at::Tensor& tokens = batch["tokens"];
  detail::require_tokens("Lstm", tokens, std::numeric_limits<int64_t>::max());
  at::Tensor x = embedding_(tokens);
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (i > 0) {
      x = at::dropout(x, options_.dropout, is_training());
    }
    x = run_layer(layers_[i], x);
  }
  return detail::classify(head_(x), batch, "targets");
}

std::vector<Factory<Metric>> Network::metrics() const {
  return {use<Perplexity>()};
}

}  // namespace

Lstm::Lstm(const Options& options) : WrappedModel(std::make_unique<Network>(options)) {}

void register_lstm(Registry<Model>& registry) {
  using Options = Lstm::Options;
  registry.add<Lstm>("Lstm", "Recurrent network that predicts the next token.")
      .key("layers", &Options::layers, at_least(1), "stacked layers of LSTM")
      .key("width", &Options::width, at_least(1), "width of embedding and state")
      .key("vocabulary", &Options::vocabulary, at_least(1), "number of different tokens")
      .key("dropout", &Options::dropout, below_one(), "share that is set to zero between layers");
}

}  // namespace rondo
