#include "models/builtin/vit.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <array>
#include <cmath>
#include <memory>
#include <vector>

#include "core/require.h"
#include "metrics/metric.h"
#include "models/blocks/attention.h"
#include "models/blocks/auto_sizes.h"
#include "models/blocks/judge.h"
#include "models/losses/loss_option.h"
#include "models/module_model.h"
#include "models/recompute.h"
#include "models/register.h"

namespace rondo {

namespace {

constexpr std::array<detail::AutoSize<Vit::Options>, 3> kSizesOfVit{
    {{"image_size", &Vit::Options::image_size},
     {"channels", &Vit::Options::channels},
     {"classes", &Vit::Options::classes}}};

constexpr double kStd = 0.02;  // of matrices that have no rule of their own

torch::nn::LayerNorm norm(int64_t width) {
  return torch::nn::LayerNorm(torch::nn::LayerNormOptions({width}).eps(1e-6));
}

torch::nn::Linear linear(int64_t inputs, int64_t outputs) {
  torch::nn::Linear made(inputs, outputs);
  torch::nn::init::xavier_uniform_(made->weight);
  torch::nn::init::normal_(made->bias, 0.0, 1e-6);
  return made;
}

/// Attention of a sequence to itself, with the parameters of `torch::nn::MultiheadAttention`.
class SelfAttention final : public torch::nn::Module {
 public:
  explicit SelfAttention(const Vit::Options& options)
      : heads_(options.heads),
        dropout_(options.dropout),
        in_weight_(
            register_parameter("in_proj_weight", at::empty({3 * options.width, options.width}))),
        in_bias_(register_parameter("in_proj_bias", at::zeros({3 * options.width}))),
        out_(register_module("out_proj", torch::nn::Linear(options.width, options.width))) {
    torch::nn::init::xavier_uniform_(in_weight_);
    torch::nn::init::zeros_(out_->bias);
  }

  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor parts = at::linear(x, in_weight_, in_bias_)
                                 .view({x.size(0), x.size(1), 3, heads_, -1})
                                 .permute({2, 0, 3, 1, 4});
    return out_(
        detail::attend(parts[0], parts[1], parts[2], /*mask=*/{}, is_training() ? dropout_ : 0.0));
  }

 private:
  int64_t heads_;
  double dropout_;
  at::Tensor in_weight_;
  at::Tensor in_bias_;
  torch::nn::Linear out_;
};

class EncoderBlock final : public torch::nn::Module {
 public:
  explicit EncoderBlock(const Vit::Options& options)
      : dropout_(options.dropout),
        ln_1_(register_module("ln_1", norm(options.width))),
        attention_(register_module("self_attention", std::make_shared<SelfAttention>(options))),
        ln_2_(register_module("ln_2", norm(options.width))) {
    const int64_t hidden = options.hidden > 0 ? options.hidden : 4 * options.width;
    mlp_->push_back(linear(options.width, hidden));
    mlp_->push_back(torch::nn::GELU());
    mlp_->push_back(torch::nn::Dropout(options.dropout));
    mlp_->push_back(linear(hidden, options.width));
    mlp_->push_back(torch::nn::Dropout(options.dropout));
    register_module("mlp", mlp_);
  }

  at::Tensor forward(const at::Tensor& input) {
    const at::Tensor x =
        input + at::dropout(attention_->forward(ln_1_(input)), dropout_, is_training());
    return x + mlp_->forward(ln_2_(x));
  }

 private:
  double dropout_;
  torch::nn::LayerNorm ln_1_;
  std::shared_ptr<SelfAttention> attention_;
  torch::nn::LayerNorm ln_2_;
  torch::nn::Sequential mlp_;
};

class VitNetwork final : public ModuleModel {
 public:
  explicit VitNetwork(const Vit::Options& options);

  Outputs forward(const Batch& batch) override;

  const Criterion* criterion() const override { return &judge_.loss(); }

  std::vector<Factory<Metric>> metrics() const override { return judge_.metrics(); }

 private:
  Vit::Options options_;
  detail::Judge judge_;
  at::Tensor class_token_;  // [1, 1, width]
  torch::nn::Conv2d conv_proj_{nullptr};
  at::Tensor position_;  // [1, 1 + patches, width]
  std::vector<std::shared_ptr<EncoderBlock>> blocks_;
  torch::nn::LayerNorm norm_{nullptr};
  torch::nn::Linear head_{nullptr};
};

VitNetwork::VitNetwork(const Vit::Options& options)
    : options_(options), judge_(options.loss, "label") {
  Vit::check(options);
  const int64_t width = options.width;
  const int64_t side = *options.image_size / options.patch;
  class_token_ = register_parameter("class_token", at::zeros({1, 1, width}));
  const auto patches =
      torch::nn::Conv2dOptions(*options.channels, width, options.patch).stride(options.patch);
  conv_proj_ = register_module("conv_proj", torch::nn::Conv2d(patches));
  const int64_t pixels = *options.channels * options.patch * options.patch;
  torch::nn::init::normal_(conv_proj_->weight, 0.0, 1.0 / std::sqrt(static_cast<double>(pixels)));
  torch::nn::init::zeros_(conv_proj_->bias);

  const auto encoder = register_module("encoder", std::make_shared<torch::nn::Module>());
  position_ = encoder->register_parameter("pos_embedding", at::empty({1, 1 + side * side, width}));
  torch::nn::init::normal_(position_, 0.0, kStd);
  const auto layers = encoder->register_module("layers", std::make_shared<torch::nn::Module>());
  for (int64_t i = 0; i < options.layers; ++i) {
    const auto block = std::make_shared<EncoderBlock>(options);
    blocks_.push_back(layers->register_module("encoder_layer_" + std::to_string(i), block));
  }
  norm_ = encoder->register_module("ln", norm(width));

  const auto heads = register_module("heads", std::make_shared<torch::nn::Module>());
  head_ = heads->register_module("head", torch::nn::Linear(width, *options.classes));
  torch::nn::init::normal_(head_->weight, 0.0, kStd);
  torch::nn::init::zeros_(head_->bias);
}

Outputs VitNetwork::forward(const Batch& batch) {
  const at::Tensor tokens = conv_proj_(batch["image"]).flatten(2).transpose(1, 2);
  const at::Tensor first = class_token_.expand({tokens.size(0), 1, options_.width});
  at::Tensor x =
      at::dropout(at::cat({first, tokens}, 1) + position_, options_.dropout, is_training());
  for (const auto& block : blocks_) {
    x = options_.recompute
            ? recompute(
                  *block, [block](const auto& inputs) { return block->forward(inputs[0]); }, {x})
            : block->forward(x);
  }
  return judge_(head_(norm_(x).select(1, 0)), batch);
}

}  // namespace

void Vit::check(const Options& options) {
  detail::check_sizes("Vit", kSizesOfVit, options);
  detail::require(options.patch >= 1, "Vit: patch", ">= 1", options.patch);
  detail::require(options.image_size.given.value_or(options.patch) % options.patch == 0,
                  "Vit: image_size",
                  fmt::format("a positive multiple of patch, {}", options.patch),
                  options.image_size.given.value_or(0));
  detail::require(options.layers >= 1, "Vit: layers", ">= 1", options.layers);
  detail::require(options.heads >= 1, "Vit: heads", ">= 1", options.heads);
  detail::require(options.width >= 1 && options.width % options.heads == 0,
                  "Vit: width",
                  fmt::format("a positive multiple of heads, {}", options.heads),
                  options.width);
  detail::require(options.hidden >= 0, "Vit: hidden", ">= 0", options.hidden);
  detail::require(
      options.dropout >= 0 && options.dropout < 1, "Vit: dropout", "in [0, 1)", options.dropout);
}

Vit::Vit(const Options& options)
    : WrappedModel(std::make_unique<VitNetwork>(detail::resolved("Vit", kSizesOfVit, options))) {}

void Vit::resolve(Options& options, const DatasetFacts& facts) {
  detail::resolve_sizes("Vit", kSizesOfVit, options, facts);
}

void register_vit(Registry<Model>& registry, const Registry<Criterion>& losses) {
  using Options = Vit::Options;
  registry.add<Vit>("Vit", "Vision transformer, with torchvision's parameters.")
      .key("image_size", &Options::image_size, at_least(1), "pixels a side")
      .key("patch", &Options::patch, at_least(1), "pixels a side of a patch, which is a token")
      .key("channels", &Options::channels, at_least(1), "colours of an image")
      .key("classes", &Options::classes, at_least(1), "different labels")
      .key("layers", &Options::layers, at_least(1), "blocks of attention and perceptron")
      .key("heads", &Options::heads, at_least(1), "heads of attention, a divisor of width")
      .key("width", &Options::width, at_least(1), "width of a token")
      .key("hidden", &Options::hidden, at_least(0), "width of a perceptron; 0: 4 times the width")
      .key("dropout", &Options::dropout, below_one(), "share of every part that is set to zero")
      .key("recompute",
           &Options::recompute,
           "true: the backward pass computes each block again, which takes less memory and more "
           "time")
      .key_of("loss", &Options::loss, LossOption(losses), "what the model is trained for");
}

}  // namespace rondo
