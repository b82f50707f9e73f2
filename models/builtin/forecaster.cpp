#include "models/builtin/forecaster.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/relu.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <memory>
#include <optional>
#include <vector>

#include "core/error.h"
#include "core/require.h"
#include "metrics/metric.h"
#include "models/blocks/judge.h"
#include "models/blocks/recurrence.h"
#include "models/losses/loss_option.h"
#include "models/losses/value_losses.h"
#include "models/module_model.h"
#include "models/register.h"

namespace rondo {

namespace {

/// Two causal convolutions of one dilation and the shortcut around them.
class CausalBlock final : public torch::nn::Module {
 public:
  CausalBlock(int64_t inputs, const Forecaster::Options& options, int64_t dilation)
      : reach_((options.kernel - 1) * dilation),
        dropout_(options.dropout),
        conv1_(torch::nn::Conv1dOptions(inputs, options.width, options.kernel).dilation(dilation)),
        conv2_(torch::nn::Conv1dOptions(options.width, options.width, options.kernel)
                   .dilation(dilation)) {
    register_module("conv1", conv1_);
    register_module("conv2", conv2_);
    if (inputs != options.width) {
      shortcut_ = register_module(
          "shortcut",
          torch::nn::Conv1d(torch::nn::Conv1dOptions(inputs, options.width, /*kernel_size=*/1)));
    }
  }

  /// \param x  [B, channels, T]
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor inside = half(conv2_, half(conv1_, x));
    return at::relu(inside + (shortcut_ ? shortcut_(x) : x));
  }

 private:
  at::Tensor half(torch::nn::Conv1d& convolution, const at::Tensor& x) {
    const at::Tensor padded = at::constant_pad_nd(x, {reach_, 0});  // on the side of the past
    return at::dropout(at::relu(convolution(padded)), dropout_, is_training());
  }

  int64_t reach_;
  double dropout_;
  torch::nn::Conv1d conv1_;
  torch::nn::Conv1d conv2_;
  torch::nn::Conv1d shortcut_{nullptr};
};

class ForecasterNetwork final : public ModuleModel {
 public:
  explicit ForecasterNetwork(const Forecaster::Options& options);

  Outputs forward(const Batch& batch) override;

  const Criterion* criterion() const override { return &judge_.loss(); }

  std::vector<Factory<Metric>> metrics() const override { return judge_.metrics(); }

 private:
  at::Tensor window_of(const Batch& batch) const;
  at::Tensor last_step(const at::Tensor& window);

  Forecaster::Options options_;
  detail::Judge judge_;
  std::vector<std::shared_ptr<CausalBlock>> blocks_;
  std::optional<detail::Recurrence> recurrence_;
  torch::nn::Linear head_{nullptr};
};

ForecasterNetwork::ForecasterNetwork(const Forecaster::Options& options)
    : options_(options), judge_(options.loss ? options.loss : use<MseLoss>(), options.label) {
  Forecaster::check(options);
  detail::require(judge_.loss().targets() == Criterion::Targets::Values,
                  "Forecaster: loss",
                  "a loss of values",
                  options.loss ? options.loss.name() : "");
  if (options.body == "tcn") {
    for (int64_t i = 0; i < options.layers; ++i) {
      const int64_t inputs = i == 0 ? options.features : options.width;
      const auto block = std::make_shared<CausalBlock>(inputs, options, int64_t{1} << i);
      blocks_.push_back(register_module("block" + std::to_string(i), block));
    }
  } else {
    recurrence_.emplace(detail::Recurrence::Options{
        options.body, options.layers, options.features, options.width, options.dropout});
    recurrence_->add_to(*this);
  }
  const int64_t outputs = options.horizon * options.targets * judge_.loss().outputs_per_value();
  head_ = register_module("head", torch::nn::Linear(options.width, outputs));
}

/// [B, T, features]
at::Tensor ForecasterNetwork::window_of(const Batch& batch) const {
  const at::Tensor& found = batch[options_.input];
  const at::Tensor window = found.dim() == 2 && options_.features == 1 ? found.unsqueeze(2) : found;
  if (window.dim() != 3 || window.size(1) < 1 || window.size(2) != options_.features) {
    throw ShapeError(fmt::format("Forecaster: \"{}\" must be [B, T, {}], it is [{}]",
                                 options_.input,
                                 options_.features,
                                 fmt::join(found.sizes(), ", ")));
  }
  return window;
}

/// What the body gives for the last step, [B, width].
at::Tensor ForecasterNetwork::last_step(const at::Tensor& window) {
  if (recurrence_) {
    return recurrence_->forward(window, is_training()).select(1, -1);
  }
  at::Tensor x = window.transpose(1, 2);
  for (const auto& block : blocks_) {
    x = block->forward(x);
  }
  return x.select(2, -1);
}

Outputs ForecasterNetwork::forward(const Batch& batch) {
  const at::Tensor window = window_of(batch);
  std::vector<int64_t> shape = {window.size(0), options_.horizon};
  if (options_.targets > 1) {
    shape.push_back(options_.targets);
  }
  if (judge_.loss().outputs_per_value() > 1) {
    shape.push_back(judge_.loss().outputs_per_value());
  }
  return judge_(head_(last_step(window)).view(shape), batch);
}

}  // namespace

void Forecaster::check(const Options& options) {
  detail::require(options.body == "tcn" || options.body == "lstm" || options.body == "gru",
                  "Forecaster: body",
                  "\"tcn\", \"lstm\" or \"gru\"",
                  options.body);
  detail::require(options.features >= 1, "Forecaster: features", ">= 1", options.features);
  detail::require(options.targets >= 1, "Forecaster: targets", ">= 1", options.targets);
  detail::require(options.horizon >= 1, "Forecaster: horizon", ">= 1", options.horizon);
  constexpr int64_t kMostLayers = 32;  // their dilation doubles
  detail::require(options.layers >= 1 && options.layers <= kMostLayers,
                  "Forecaster: layers",
                  fmt::format("in [1, {}]", kMostLayers),
                  options.layers);
  detail::require(options.width >= 1, "Forecaster: width", ">= 1", options.width);
  detail::require(options.kernel >= 2, "Forecaster: kernel", ">= 2", options.kernel);
  detail::require(options.dropout >= 0 && options.dropout < 1,
                  "Forecaster: dropout",
                  "in [0, 1)",
                  options.dropout);
}

Forecaster::Forecaster(const Options& options)
    : WrappedModel(std::make_unique<ForecasterNetwork>(options)) {}

void register_forecaster(Registry<Model>& registry, const Registry<Criterion>& losses) {
  using Options = Forecaster::Options;
  registry.add<Forecaster>("Forecaster", "Predicts the next values of a time series.")
      .key("body",
           &Options::body,
           one_of({"tcn", "lstm", "gru"}),
           "causal dilated convolutions, or recurrent layers")
      .key("features", &Options::features, at_least(1), "numbers of a step that are seen")
      .key("targets", &Options::targets, at_least(1), "numbers of a step that are predicted")
      .key("horizon", &Options::horizon, at_least(1), "steps that are predicted")
      .key("layers", &Options::layers, between(1, 32), "layers of the body")
      .key("width", &Options::width, at_least(1), "channels, or state, of each layer")
      .key("kernel", &Options::kernel, at_least(2), "steps that a convolution sees")
      .key("dropout", &Options::dropout, below_one(), "share of each layer that is set to zero")
      .key("input", &Options::input, "name of the window in the batch: [B, T, features]")
      .key("label", &Options::label, "name of what follows it: [B, horizon]")
      .key_of("loss", &Options::loss, LossOption(losses), "loss of values, instead of MSE");
}

}  // namespace rondo
