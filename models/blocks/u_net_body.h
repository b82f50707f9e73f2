#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace rondo::detail {

/// A convolution, or a transposed one, over signals of 1, 2 or 3 dimensions.
class Convolution final : public torch::nn::Module {
 public:
  struct Options {
    int64_t dims = 2;
    int64_t inputs = 1;
    int64_t outputs = 1;
    int64_t kernel = 3;
    int64_t stride = 1;
    int64_t padding = 0;
    bool transposed = false;
    bool bias = true;
  };

  explicit Convolution(const Options& options);

  at::Tensor forward(const at::Tensor& x) const;

 private:
  Options options_;
  at::Tensor weight_;
  at::Tensor bias_;
};

/// The U of a U-Net: halves its input `depth` times by max pooling, doubling the channels, and
/// doubles it again, joined with what was there on the way down. Each level has two convolutions
/// with norm and activation.
/// Source: Ronneberger et al. 2015, arXiv:1505.04597, with padding and norms; Çiçek et al. 2016,
/// arXiv:1606.06650, for three dimensions.
class UNetBody final : public torch::nn::Module {
 public:
  struct Options {
    int64_t dims = 2;            ///< 1, 2 or 3
    int64_t inputs = 1;          ///< channels
    int64_t outputs = 1;         ///< channels
    int64_t width = 16;          ///< channels of the first level; a multiple of 8 for group norm
    int64_t depth = 3;           ///< times that the size is halved
    std::string norm = "batch";  ///< "batch", "group" (of 8 channels) or "none"
    int64_t time_width = 0;      ///< of what `time` has; 0: there is none
  };

  explicit UNetBody(const Options& options);

  /// \param x     [B, inputs, ...], each size a multiple of 2 to the depth
  /// \param time  [B, time_width], added in each level; undefined without a width
  /// \return [B, outputs, ...]
  at::Tensor forward(const at::Tensor& x, const at::Tensor& time);

 private:
  class Level;

  std::shared_ptr<Level> level(const std::string& name, int64_t inputs, int64_t outputs);

  Options options_;
  std::vector<std::shared_ptr<Level>> down_;
  std::vector<std::shared_ptr<Convolution>> up_;
  std::vector<std::shared_ptr<Level>> join_;
  std::shared_ptr<Level> bottom_;
  std::shared_ptr<Convolution> head_;
};

/// \throws ShapeError  when x is no [B, channels, ...] of so many dimensions whose sizes can be
///                     halved `depth` times
void require_halvable(const char* model, const at::Tensor& x, const UNetBody::Options& options);

}  // namespace rondo::detail
