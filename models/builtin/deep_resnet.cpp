#include "models/builtin/deep_resnet.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <array>
#include <memory>
#include <vector>

#include "core/require.h"
#include "metrics/metric.h"
#include "models/blocks/auto_sizes.h"
#include "models/blocks/judge.h"
#include "models/losses/loss_option.h"
#include "models/module_model.h"
#include "models/recompute.h"
#include "models/register.h"

namespace rondo {

namespace {

constexpr std::array<detail::AutoSize<DeepResNet::Options>, 2> kSizesOfDeepResNet{
    {{"channels", &DeepResNet::Options::channels}, {"classes", &DeepResNet::Options::classes}}};

constexpr int64_t kStages = 4;

/// Blocks of each stage, and whether they are bottlenecks.
struct Depth {
  int64_t layers;
  std::array<int64_t, kStages> blocks;
  bool is_bottleneck;
};

constexpr Depth kDepths[] = {{18, {2, 2, 2, 2}, false},
                             {34, {3, 4, 6, 3}, false},
                             {50, {3, 4, 6, 3}, true},
                             {101, {3, 4, 23, 3}, true},
                             {152, {3, 8, 36, 3}, true}};

const Depth* depth_of(int64_t layers) {
  for (const Depth& depth : kDepths) {
    if (depth.layers == layers) {
      return &depth;
    }
  }
  return nullptr;
}

torch::nn::Conv2d convolution(int64_t inputs, int64_t outputs, int64_t kernel, int64_t stride) {
  torch::nn::Conv2d made(torch::nn::Conv2dOptions(inputs, outputs, kernel)
                             .stride(stride)
                             .padding(kernel / 2)
                             .bias(false));
  torch::nn::init::kaiming_normal_(made->weight, /*a=*/0, torch::kFanOut, torch::kReLU);
  return made;
}

/// Two or three convolutions and the shortcut around them.
class DeepResNetBlock final : public torch::nn::Module {
 public:
  DeepResNetBlock(int64_t inputs, int64_t width, int64_t stride, bool is_bottleneck) {
    const int64_t outputs = is_bottleneck ? 4 * width : width;
    if (is_bottleneck) {
      add(inputs, width, 1, 1);
      add(width, width, 3, stride);
      add(width, outputs, 1, 1);
    } else {
      add(inputs, width, 3, stride);
      add(width, width, 3, 1);
    }
    if (stride != 1 || inputs != outputs) {
      downsample_ = register_module("downsample",
                                    torch::nn::Sequential(convolution(inputs, outputs, 1, stride),
                                                          torch::nn::BatchNorm2d(outputs)));
    }
  }

  at::Tensor forward(const at::Tensor& input) {
    at::Tensor x = input;
    for (size_t i = 0; i < layers_.size(); ++i) {
      x = layers_[i].norm(layers_[i].convolution(x));
      if (i + 1 < layers_.size()) {
        x = at::relu(x);
      }
    }
    return at::relu(x + (downsample_ ? downsample_->forward(input) : input));
  }

 private:
  struct Layer {
    torch::nn::Conv2d convolution;
    torch::nn::BatchNorm2d norm;
  };

  void add(int64_t inputs, int64_t outputs, int64_t kernel, int64_t stride) {
    const std::string number = std::to_string(layers_.size() + 1);
    const auto made = convolution(inputs, outputs, kernel, stride);
    layers_.push_back({register_module("conv" + number, made),
                       register_module("bn" + number, torch::nn::BatchNorm2d(outputs))});
  }

  std::vector<Layer> layers_;
  torch::nn::Sequential downsample_{nullptr};
};

class DeepResNetNetwork final : public ModuleModel {
 public:
  explicit DeepResNetNetwork(const DeepResNet::Options& options);

  Outputs forward(const Batch& batch) override;

  const Criterion* criterion() const override { return &judge_.loss(); }

  std::vector<Factory<Metric>> metrics() const override { return judge_.metrics(); }

 private:
  bool is_for_small_images_;
  bool recomputes_;
  detail::Judge judge_;
  torch::nn::Conv2d conv1_{nullptr};
  torch::nn::BatchNorm2d bn1_{nullptr};
  std::vector<std::shared_ptr<DeepResNetBlock>> blocks_;
  torch::nn::Linear fc_{nullptr};
};

DeepResNetNetwork::DeepResNetNetwork(const DeepResNet::Options& options)
    : is_for_small_images_(options.stem == "cifar"),
      recomputes_(options.recompute),
      judge_(options.loss, "label") {
  DeepResNet::check(options);
  const Depth& depth = *depth_of(options.depth);
  const int64_t kernel = is_for_small_images_ ? 3 : 7;
  conv1_ = register_module(
      "conv1", convolution(*options.channels, options.width, kernel, is_for_small_images_ ? 1 : 2));
  bn1_ = register_module("bn1", torch::nn::BatchNorm2d(options.width));
  int64_t inputs = options.width;
  for (int64_t stage = 0; stage < kStages; ++stage) {
    const int64_t width = options.width << stage;
    const auto blocks =
        register_module("layer" + std::to_string(stage + 1), std::make_shared<torch::nn::Module>());
    for (int64_t i = 0; i < depth.blocks[static_cast<size_t>(stage)]; ++i) {
      const int64_t stride = i == 0 && stage > 0 ? 2 : 1;
      const auto block =
          std::make_shared<DeepResNetBlock>(inputs, width, stride, depth.is_bottleneck);
      blocks_.push_back(blocks->register_module(std::to_string(i), block));
      inputs = depth.is_bottleneck ? 4 * width : width;
    }
  }
  fc_ = register_module("fc", torch::nn::Linear(inputs, *options.classes));
}

Outputs DeepResNetNetwork::forward(const Batch& batch) {
  at::Tensor x = at::relu(bn1_(conv1_(batch["image"])));
  if (!is_for_small_images_) {
    x = at::max_pool2d(x, /*kernel_size=*/3, /*stride=*/2, /*padding=*/1);
  }
  for (const auto& block : blocks_) {
    x = recomputes_
            ? recompute(
                  *block, [block](const auto& inputs) { return block->forward(inputs[0]); }, {x})
            : block->forward(x);
  }
  return judge_(fc_(x.mean({2, 3})), batch);
}

}  // namespace

void DeepResNet::check(const Options& options) {
  detail::check_sizes("DeepResNet", kSizesOfDeepResNet, options);
  detail::require(depth_of(options.depth) != nullptr,
                  "DeepResNet: depth",
                  "18, 34, 50, 101 or 152",
                  options.depth);
  detail::require(options.width >= 1, "DeepResNet: width", ">= 1", options.width);
  detail::require(options.stem == "imagenet" || options.stem == "cifar",
                  "DeepResNet: stem",
                  "\"imagenet\" or \"cifar\"",
                  options.stem);
}

DeepResNet::DeepResNet(const Options& options)
    : WrappedModel(std::make_unique<DeepResNetNetwork>(
          detail::resolved("DeepResNet", kSizesOfDeepResNet, options))) {}

void DeepResNet::resolve(Options& options, const DatasetFacts& facts) {
  detail::resolve_sizes("DeepResNet", kSizesOfDeepResNet, options, facts);
}

void register_deep_resnet(Registry<Model>& registry, const Registry<Criterion>& losses) {
  using Options = DeepResNet::Options;
  registry.add<DeepResNet>("DeepResNet", "ResNet-18 to -152, with torchvision's parameters.")
      .key("depth", &Options::depth, at_least(1), "layers: 18, 34, 50, 101 or 152")
      .key("classes", &Options::classes, at_least(1), "different labels")
      .key("channels", &Options::channels, at_least(1), "colours of an image")
      .key("width", &Options::width, at_least(1), "channels of the first stage")
      .key("stem",
           &Options::stem,
           one_of({"imagenet", "cifar"}),
           "first layers: for images of 224 pixels, or of 32")
      .key("recompute",
           &Options::recompute,
           "true: the backward pass computes each block again, which takes less memory and more "
           "time")
      .key_of("loss", &Options::loss, LossOption(losses), "what the model is trained for");
}

}  // namespace rondo
