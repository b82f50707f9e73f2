#include "models/builtin/mobile_net.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/relu6.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <array>
#include <memory>
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

constexpr std::array<detail::AutoSize<MobileNet::Options>, 2> kSizesOfMobileNet{
    {{"channels", &MobileNet::Options::channels}, {"classes", &MobileNet::Options::classes}}};

/// A row of the paper's table 2: blocks of one width, the first of which has the stride.
struct Row {
  int64_t expansion;
  int64_t channels;
  int64_t blocks;
  int64_t stride;
};

constexpr Row kRows[] = {{1, 16, 1, 1},
                         {6, 24, 2, 2},
                         {6, 32, 3, 2},
                         {6, 64, 4, 2},
                         {6, 96, 3, 1},
                         {6, 160, 3, 2},
                         {6, 320, 1, 1}};

/// The nearest multiple of 8, but not less than nine tenths of it.
int64_t rounded(double channels) {
  const int64_t nearest = std::max<int64_t>(8, static_cast<int64_t>(channels + 4) / 8 * 8);
  return static_cast<double>(nearest) < 0.9 * channels ? nearest + 8 : nearest;
}

struct Shape {
  int64_t inputs;
  int64_t outputs;
  int64_t kernel;
  int64_t stride = 1;
  int64_t groups = 1;
};

torch::nn::Conv2d convolution(const Shape& shape) {
  torch::nn::Conv2d made(torch::nn::Conv2dOptions(shape.inputs, shape.outputs, shape.kernel)
                             .stride(shape.stride)
                             .padding(shape.kernel / 2)
                             .groups(shape.groups)
                             .bias(false));
  torch::nn::init::kaiming_normal_(made->weight, /*a=*/0, torch::kFanOut);
  return made;
}

/// Convolution, norm and ReLU6, numbered as in a Sequential.
class Activated final : public torch::nn::Module {
 public:
  explicit Activated(const Shape& shape)
      : convolution_(register_module("0", convolution(shape))),
        norm_(register_module("1", torch::nn::BatchNorm2d(shape.outputs))) {}

  at::Tensor forward(const at::Tensor& x) { return at::relu6(norm_(convolution_(x))); }

 private:
  torch::nn::Conv2d convolution_;
  torch::nn::BatchNorm2d norm_;
};

/// Wider, depthwise, narrow again, and the shortcut around it where the shape stays.
class InvertedBlock final : public torch::nn::Module {
 public:
  InvertedBlock(int64_t inputs, int64_t outputs, int64_t stride, int64_t expansion)
      : has_shortcut_(stride == 1 && inputs == outputs) {
    const int64_t wide = inputs * expansion;
    if (expansion != 1) {
      layers_->push_back(std::make_shared<Activated>(Shape{inputs, wide, 1}));
    }
    layers_->push_back(std::make_shared<Activated>(Shape{wide, wide, 3, stride, wide}));
    layers_->push_back(convolution({wide, outputs, 1}));
    layers_->push_back(torch::nn::BatchNorm2d(outputs));
    register_module("conv", layers_);
  }

  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor inside = layers_->forward(x);
    return has_shortcut_ ? x + inside : inside;
  }

 private:
  bool has_shortcut_;
  torch::nn::Sequential layers_;
};

class MobileNetNetwork final : public ModuleModel {
 public:
  explicit MobileNetNetwork(const MobileNet::Options& options);

  Outputs forward(const Batch& batch) override {
    return judge_(classifier_->forward(features_->forward(batch["image"]).mean({2, 3})), batch);
  }

  const Criterion* criterion() const override { return &judge_.loss(); }

  std::vector<Factory<Metric>> metrics() const override { return judge_.metrics(); }

 private:
  detail::Judge judge_;
  torch::nn::Sequential features_;
  torch::nn::Sequential classifier_;
};

MobileNetNetwork::MobileNetNetwork(const MobileNet::Options& options)
    : judge_(options.loss, "label") {
  MobileNet::check(options);
  const bool is_small = options.stem == "cifar";
  int64_t channels = rounded(32 * options.width);
  features_->push_back(
      std::make_shared<Activated>(Shape{*options.channels, channels, 3, is_small ? 1 : 2}));
  for (const Row& row : kRows) {
    const int64_t outputs = rounded(static_cast<double>(row.channels) * options.width);
    // For small images the first row with a stride has none.
    const int64_t stride = is_small && row.channels == 24 ? 1 : row.stride;
    for (int64_t i = 0; i < row.blocks; ++i) {
      features_->push_back(
          std::make_shared<InvertedBlock>(channels, outputs, i == 0 ? stride : 1, row.expansion));
      channels = outputs;
    }
  }
  const int64_t last = rounded(1280 * std::max(1.0, options.width));
  features_->push_back(std::make_shared<Activated>(Shape{channels, last, 1}));
  register_module("features", features_);
  torch::nn::Linear head(last, *options.classes);
  torch::nn::init::normal_(head->weight, 0.0, 0.01);
  torch::nn::init::zeros_(head->bias);
  classifier_->push_back(torch::nn::Dropout(options.dropout));
  classifier_->push_back(head);
  register_module("classifier", classifier_);
}

}  // namespace

void MobileNet::check(const Options& options) {
  detail::check_sizes("MobileNet", kSizesOfMobileNet, options);
  detail::require(options.width > 0, "MobileNet: width", "> 0", options.width);
  detail::require(options.dropout >= 0 && options.dropout < 1,
                  "MobileNet: dropout",
                  "in [0, 1)",
                  options.dropout);
  detail::require(options.stem == "imagenet" || options.stem == "cifar",
                  "MobileNet: stem",
                  "\"imagenet\" or \"cifar\"",
                  options.stem);
}

MobileNet::MobileNet(const Options& options)
    : WrappedModel(std::make_unique<MobileNetNetwork>(
          detail::resolved("MobileNet", kSizesOfMobileNet, options))) {}

void MobileNet::resolve(Options& options, const DatasetFacts& facts) {
  detail::resolve_sizes("MobileNet", kSizesOfMobileNet, options, facts);
}

void register_mobile_net(Registry<Model>& registry, const Registry<Criterion>& losses) {
  using Options = MobileNet::Options;
  registry.add<MobileNet>("MobileNet", "MobileNetV2, with torchvision's parameters.")
      .key("classes", &Options::classes, at_least(1), "different labels")
      .key("channels", &Options::channels, at_least(1), "colours of an image")
      .key("width", &Options::width, greater_than(0), "factor of all channels")
      .key("stem",
           &Options::stem,
           one_of({"imagenet", "cifar"}),
           "first layers: for images of 224 pixels, or of 32")
      .key("dropout", &Options::dropout, below_one(), "share set to zero before the last layer")
      .key_of("loss", &Options::loss, LossOption(losses), "what the model is trained for");
}

}  // namespace rondo
