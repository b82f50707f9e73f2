#pragma once

#include <cstdint>

#include "callbacks/algorithms/layer_surgery.h"

namespace rondo {

/// Blurs the input of convolutions with a stride, and the output of max pools before their stride.
/// Source: Zhang 2019, arXiv:1904.11486
class BlurPool final : public LayerSurgery {
 public:
  struct Options {
    bool replace_convs = true;
    bool replace_maxpools = true;
    int64_t min_channels = 16;  ///< of a layer's input, >= 1
  };

  explicit BlurPool(const Options& options);

 protected:
  void change(torch::nn::Module& model) override;

 private:
  Options options_;
};

/// Weighs the channels behind a convolution by what their means say.
/// Source: Hu et al. 2018, arXiv:1709.01507, section 3
class SqueezeExcite final : public LayerSurgery {
 public:
  struct Options {
    int64_t latent_channels = 64;  ///< >= 1
    int64_t min_channels = 128;    ///< of input and output of a convolution that is changed, >= 1
  };

  explicit SqueezeExcite(const Options& options);

 protected:
  void change(torch::nn::Module& model) override;

 private:
  Options options_;
};

/// Normalizes parts of a batch by statistics of their own, in training.
/// Source: Hoffer et al. 2017, arXiv:1705.08741, Algorithm 1
class GhostBatchNorm final : public LayerSurgery {
 public:
  struct Options {
    int64_t ghost_batch_size = 32;  ///< samples of a part, >= 1
  };

  explicit GhostBatchNorm(const Options& options);

  /// Warns of batches that have no part of that size.
  void on_fit_start(Trainer& trainer, const DataLoader& train, const Loaders&, Loop&) override;

  bool required_on_load() const override { return false; }

 protected:
  void change(torch::nn::Module& model) override;

 private:
  Options options_;
};

/// Gives the weights of each output channel of convolutions mean 0 and variance 1.
/// Source: Qiao et al. 2019, arXiv:1903.10520, equation 5
class WeightStandardization final : public LayerSurgery {
 public:
  struct Options {
    int64_t n_last_layers_ignore = 0;  ///< convolutions at the end that stay as they are, >= 0
  };

  explicit WeightStandardization(const Options& options);

 protected:
  void change(torch::nn::Module& model) override;

 private:
  Options options_;
};

/// Splits large layers into two with fewer numbers between them, beginning with the best split of
/// what the layer computes. The weight stays in the model, frozen and unused.
/// Source: Jaderberg et al. 2014, arXiv:1405.3866; Xue et al. 2013 for linear layers
class Factorize final : public LayerSurgery {
 public:
  struct Options {
    bool factorize_convs = true;
    bool factorize_linears = true;
    int64_t min_channels = 256;     ///< of input and output of a convolution, >= 1
    int64_t latent_channels = 64;   ///< between its two parts, >= 1
    int64_t min_features = 256;     ///< of input and output of a linear layer, >= 1
    int64_t latent_features = 128;  ///< between its two parts, >= 1
  };

  explicit Factorize(const Options& options);

 protected:
  void change(torch::nn::Module& model) override;

 private:
  Options options_;
};

/// Computes layer norms in the number format of the other layers, where that is a short one.
/// Source: Composer's LowPrecisionLayerNorm
class LowPrecisionLayerNorm final : public LayerSurgery {
 public:
  bool required_on_load() const override { return false; }

 protected:
  void change(torch::nn::Module& model) override;
};

/// The same for group norms.
class LowPrecisionGroupNorm final : public LayerSurgery {
 public:
  bool required_on_load() const override { return false; }

 protected:
  void change(torch::nn::Module& model) override;
};

}  // namespace rondo
