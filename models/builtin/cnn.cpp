#include "models/builtin/cnn.h"

#include <ATen/ops/dropout.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>
#include <fmt/ranges.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <array>
#include <optional>

#include "core/require.h"
#include "metrics/metric.h"
#include "models/blocks/auto_sizes.h"
#include "models/blocks/judge.h"
#include "models/losses/loss_option.h"
#include "models/module_model.h"
#include "models/register.h"

namespace rondo {

namespace {

constexpr std::array<detail::AutoSize<Cnn::Options>, 3> kSizesOfCnn{
    {{"channels", &Cnn::Options::channels},
     {"image_size", &Cnn::Options::image_size},
     {"classes", &Cnn::Options::classes}}};

class CnnNetwork final : public ModuleModel {
 public:
  explicit CnnNetwork(const Cnn::Options& options);

  Outputs forward(const Batch& batch) override;

  const Criterion* criterion() const override { return &judge_.loss(); }

  std::vector<Factory<Metric>> metrics() const override;

 private:
  struct Stage {
    torch::nn::Conv2d convolution;
    torch::nn::BatchNorm2d norm;
  };

  double dropout_;
  detail::Judge judge_;
  std::vector<Stage> stages_;
  torch::nn::Linear head_{nullptr};
};

CnnNetwork::CnnNetwork(const Cnn::Options& options)
    : dropout_(options.dropout), judge_(options.loss, "label") {
  Cnn::check(options);
  int64_t channels = *options.channels;
  for (const int64_t width : options.widths) {
    const std::string index = std::to_string(stages_.size());
    // The norm that follows takes a bias away again.
    const auto convolution =
        torch::nn::Conv2dOptions(channels, width, /*kernel_size=*/3).padding(1).bias(false);
    stages_.push_back({register_module("conv" + index, torch::nn::Conv2d(convolution)),
                       register_module("norm" + index, torch::nn::BatchNorm2d(width))});
    channels = width;
  }
  const int64_t side = *options.image_size >> options.widths.size();
  head_ = register_module("head", torch::nn::Linear(channels * side * side, *options.classes));
}

Outputs CnnNetwork::forward(const Batch& batch) {
  at::Tensor x = batch["image"];
  for (Stage& stage : stages_) {
    x = at::relu(stage.norm(stage.convolution(x)));
    x = at::max_pool2d(x, /*kernel_size=*/2);
  }
  x = at::dropout(x.flatten(1), dropout_, is_training());
  return judge_(head_(x), batch);
}

std::vector<Factory<Metric>> CnnNetwork::metrics() const {
  return judge_.metrics();
}

}  // namespace

void Cnn::check(const Options& options) {
  detail::check_sizes("Cnn", kSizesOfCnn, options);
  const std::vector<int64_t>& widths = options.widths;
  detail::require(!widths.empty() &&
                      std::all_of(widths.begin(), widths.end(), [](int64_t n) { return n >= 1; }),
                  "Cnn: widths",
                  "at least 1 number, each >= 1",
                  fmt::format("{}", widths));
  const std::optional<int64_t> image_size = options.image_size.given;
  constexpr size_t kMostStages = 16;  // far beyond any image: keeps the shift below in range
  detail::require(
      widths.size() <= kMostStages && (image_size.value_or(1 << kMostStages) >> widths.size()) >= 1,
      "Cnn: image_size",
      fmt::format("large enough to be halved {} times, once for each width", widths.size()),
      image_size.value_or(0));
  detail::require(
      options.dropout >= 0 && options.dropout < 1, "Cnn: dropout", "in [0, 1)", options.dropout);
}

Cnn::Cnn(const Options& options)
    : WrappedModel(std::make_unique<CnnNetwork>(detail::resolved("Cnn", kSizesOfCnn, options))) {}

void Cnn::resolve(Options& options, const DatasetFacts& facts) {
  detail::resolve_sizes("Cnn", kSizesOfCnn, options, facts);
}

void register_cnn(Registry<Model>& registry, const Registry<Criterion>& losses) {
  using Options = Cnn::Options;
  registry.add<Cnn>("Cnn", "Stages of convolution, batch norm and pooling, then a linear layer.")
      .key("channels", &Options::channels, at_least(1), "colours of an image")
      .key("image_size", &Options::image_size, at_least(1), "pixels a side")
      .key("classes", &Options::classes, at_least(1), "different labels")
      .key("widths", &Options::widths, each(1, at_least(1)), "channels of each stage")
      .key("dropout",
           &Options::dropout,
           below_one(),
           "share that is set to zero before the linear layer")
      .key_of("loss", &Options::loss, LossOption(losses), "what the model is trained for");
}

}  // namespace rondo
