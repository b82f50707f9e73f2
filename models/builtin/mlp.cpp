#include "models/builtin/mlp.h"

#include <ATen/ops/dropout.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/tanh.h>
#include <fmt/ranges.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>

#include "core/require.h"
#include "metrics/metric.h"
#include "models/blocks/judge.h"
#include "models/losses/loss_option.h"
#include "models/module_model.h"
#include "models/register.h"

namespace rondo {

namespace {

class MlpNetwork final : public ModuleModel {
 public:
  explicit MlpNetwork(const Mlp::Options& options);

  Outputs forward(const Batch& batch) override;

  const Criterion* criterion() const override { return &judge_.loss(); }

  std::vector<Factory<Metric>> metrics() const override;

 private:
  at::Tensor activate(const at::Tensor& input) const;

  Mlp::Options options_;
  detail::Judge judge_;
  std::vector<torch::nn::Linear> layers_;
};

MlpNetwork::MlpNetwork(const Mlp::Options& options)
    : options_(options), judge_(options.loss, options.label) {
  const std::vector<int64_t>& sizes = options.sizes;
  detail::require(sizes.size() >= 2 &&
                      std::all_of(sizes.begin(), sizes.end(), [](int64_t n) { return n >= 1; }),
                  "Mlp: sizes",
                  "at least 2 numbers, each >= 1",
                  fmt::format("{}", sizes));
  detail::require(
      options.activation == "relu" || options.activation == "gelu" || options.activation == "tanh",
      "Mlp: activation",
      "\"relu\", \"gelu\" or \"tanh\"",
      options.activation);
  detail::require(
      options.dropout >= 0 && options.dropout < 1, "Mlp: dropout", "in [0, 1)", options.dropout);
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    const torch::nn::Linear layer(sizes[i], sizes[i + 1]);
    layers_.push_back(register_module("layer" + std::to_string(i), layer));
  }
}

at::Tensor MlpNetwork::activate(const at::Tensor& input) const {
  if (options_.activation == "relu") {
    return at::relu(input);
  }
  return options_.activation == "gelu" ? at::gelu(input) : at::tanh(input);
}

Outputs MlpNetwork::forward(const Batch& batch) {
  at::Tensor x = batch[options_.input].flatten(1);
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (i > 0) {
      x = at::dropout(activate(x), options_.dropout, is_training());
    }
    x = layers_[i](x);
  }
  return judge_(x, batch);
}

std::vector<Factory<Metric>> MlpNetwork::metrics() const {
  return judge_.metrics();
}

}  // namespace

Mlp::Mlp(const Options& options) : WrappedModel(std::make_unique<MlpNetwork>(options)) {}

void register_mlp(Registry<Model>& registry, const Registry<Criterion>& losses) {
  using Options = Mlp::Options;
  registry.add<Mlp>("Mlp", "Linear layers with an activation and dropout between them.")
      .key("sizes", &Options::sizes, each(2, at_least(1)), "inputs, hidden units …, classes")
      .key("activation",
           &Options::activation,
           one_of({"relu", "gelu", "tanh"}),
           "what stands between two layers")
      .key("dropout",
           &Options::dropout,
           below_one(),
           "share of hidden units that dropout sets to zero")
      .key("input", &Options::input, "name in the batch: [B, …], flattened from dimension 1")
      .key("label", &Options::label, "name in the batch: int64 [B]")
      .key_of("loss", &Options::loss, LossOption(losses), "what the model is trained for");
}

}  // namespace rondo
