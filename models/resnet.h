#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <cstdint>
#include <vector>

#include "models/module_model.h"

namespace rondo {

/// Residual network for small images such as CIFAR: depth 6 · blocks + 2, three stages of widths
/// w, 2w, 4w, shortcuts without parameters. Classifies "image", float32 [B, channels, H, W] with
/// H, W >= 4, with "label", int64 [B].
/// Source: He et al. 2015, arXiv:1512.03385, section 4.2, shortcuts of option A; initialisation of
/// He et al. 2015, arXiv:1502.01852.
class ResNet final : public ModuleModel {
 public:
  struct Options {
    int64_t blocks = 3;    ///< in each stage, >= 1; 3: ResNet-20
    int64_t width = 16;    ///< channels of the first stage, >= 1
    int64_t classes = 10;  ///< >= 1
    int64_t channels = 3;  ///< of the images, >= 1
  };

  explicit ResNet(const Options& options);

  /// "loss", the mean cross entropy, when the batch has labels, and "logits", [B, classes].
  /// \capture safe
  Outputs forward(const Batch& batch) override;

  std::vector<Factory<Metric>> metrics() const override;

  /// Two convolutions and the shortcut around them.
  class BlockImpl : public torch::nn::Module {
   public:
    BlockImpl(int64_t inputs, int64_t outputs);

    at::Tensor forward(const at::Tensor& input);

   private:
    int64_t added_channels_;
    torch::nn::Conv2d conv1_;
    torch::nn::BatchNorm2d norm1_;
    torch::nn::Conv2d conv2_;
    torch::nn::BatchNorm2d norm2_;
  };

 private:
  torch::nn::Conv2d conv_;
  torch::nn::BatchNorm2d norm_;
  std::vector<std::shared_ptr<BlockImpl>> blocks_;
  torch::nn::Linear head_;
};

}  // namespace rondo
