#include "models/builtin/resnet.h"

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/relu.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <array>
#include <vector>

#include "core/require.h"
#include "metrics/metric.h"
#include "models/blocks/auto_sizes.h"
#include "models/blocks/judge.h"
#include "models/losses/loss_option.h"
#include "models/module_model.h"
#include "models/register.h"

namespace rondo {

namespace {

constexpr std::array<detail::AutoSize<ResNet::Options>, 2> kSizesOfResNet{
    {{"channels", &ResNet::Options::channels}, {"classes", &ResNet::Options::classes}}};

constexpr int64_t kResNetStages = 3;

ResNet::Options validated(const ResNet::Options& options) {
  detail::check_sizes("ResNet", kSizesOfResNet, options);
  detail::require(options.blocks >= 1, "ResNet: blocks", ">= 1", options.blocks);
  detail::require(options.width >= 1, "ResNet: width", ">= 1", options.width);
  return options;
}

torch::nn::Conv2d convolution(int64_t inputs, int64_t outputs, int64_t stride) {
  torch::nn::Conv2d made(torch::nn::Conv2dOptions(inputs, outputs, /*kernel_size=*/3)
                             .stride(stride)
                             .padding(1)
                             .bias(false));
  torch::nn::init::kaiming_normal_(made->weight, /*a=*/0, torch::kFanOut, torch::kReLU);
  return made;
}

/// Two convolutions and the shortcut around them.
class Block final : public torch::nn::Module {
 public:
  Block(int64_t inputs, int64_t outputs);

  at::Tensor forward(const at::Tensor& input);

 private:
  int64_t added_channels_;
  torch::nn::Conv2d conv1_;
  torch::nn::BatchNorm2d norm1_;
  torch::nn::Conv2d conv2_;
  torch::nn::BatchNorm2d norm2_;
};

Block::Block(int64_t inputs, int64_t outputs)
    : added_channels_(outputs - inputs),
      conv1_(convolution(inputs, outputs, inputs == outputs ? 1 : 2)),
      norm1_(outputs),
      conv2_(convolution(outputs, outputs, 1)),
      norm2_(outputs) {
  register_module("conv1", conv1_);
  register_module("norm1", norm1_);
  register_module("conv2", conv2_);
  register_module("norm2", norm2_);
}

at::Tensor Block::forward(const at::Tensor& input) {
  const at::Tensor inside = norm2_(conv2_(at::relu(norm1_(conv1_(input)))));
  if (added_channels_ == 0) {
    return at::relu(inside + input);
  }
  // Every second pixel, and zeros for the channels that the input does not have.
  const at::Tensor pixels =
      input.slice(/*dim=*/2, 0, input.size(2), 2).slice(/*dim=*/3, 0, input.size(3), 2);
  return at::relu(inside + at::constant_pad_nd(pixels, {0, 0, 0, 0, 0, added_channels_}));
}

class ResNetNetwork final : public ModuleModel {
 public:
  explicit ResNetNetwork(const ResNet::Options& options);

  Outputs forward(const Batch& batch) override;

  const Criterion* criterion() const override { return &judge_.loss(); }

  std::vector<Factory<Metric>> metrics() const override;

 private:
  torch::nn::Conv2d conv_;
  torch::nn::BatchNorm2d norm_;
  std::vector<std::shared_ptr<Block>> blocks_;
  torch::nn::Linear head_;
  detail::Judge judge_;
};

ResNetNetwork::ResNetNetwork(const ResNet::Options& options)
    : conv_(convolution(*validated(options).channels, options.width, 1)),
      norm_(options.width),
      head_(options.width << (kResNetStages - 1), *options.classes),
      judge_(options.loss, "label") {
  register_module("conv", conv_);
  register_module("norm", norm_);
  int64_t inputs = options.width;
  for (int64_t stage = 0; stage < kResNetStages; ++stage) {
    for (int64_t i = 0; i < options.blocks; ++i) {
      const int64_t outputs = options.width << stage;
      const std::string name = "stage" + std::to_string(stage) + "_block" + std::to_string(i);
      blocks_.push_back(register_module(name, std::make_shared<Block>(inputs, outputs)));
      inputs = outputs;
    }
  }
  register_module("head", head_);
}

Outputs ResNetNetwork::forward(const Batch& batch) {
  at::Tensor x = at::relu(norm_(conv_(batch["image"])));
  for (const auto& block : blocks_) {
    x = block->forward(x);
  }
  return judge_(head_(x.mean({2, 3})), batch);
}

std::vector<Factory<Metric>> ResNetNetwork::metrics() const {
  return judge_.metrics();
}

}  // namespace

ResNet::ResNet(const Options& options)
    : WrappedModel(
          std::make_unique<ResNetNetwork>(detail::resolved("ResNet", kSizesOfResNet, options))) {}

void ResNet::resolve(Options& options, const DatasetFacts& facts) {
  detail::resolve_sizes("ResNet", kSizesOfResNet, options, facts);
}

void register_resnet(Registry<Model>& registry, const Registry<Criterion>& losses) {
  using Options = ResNet::Options;
  registry.add<ResNet>("ResNet", "Residual network for small images: depth 6 * blocks + 2.")
      .key("blocks",
           &Options::blocks,
           at_least(1),
           "residual blocks of each of the three stages; 3: ResNet-20")
      .key("width", &Options::width, at_least(1), "channels of the first stage")
      .key("classes", &Options::classes, at_least(1), "different labels")
      .key("channels", &Options::channels, at_least(1), "colours of an image")
      .key_of("loss", &Options::loss, LossOption(losses), "what the model is trained for");
}

}  // namespace rondo
