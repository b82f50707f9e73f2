#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "models/losses/criterion.h"
#include "models/wrapped_model.h"

namespace rondo {

/// Linear layers that make a sample small, and others that make it again. Sees a tensor of the
/// batch, floating [B, ...]; returns "loss", how far the reconstruction is from it,
/// "reconstruction" of its shape, and "latent", [B, the smallest of the sizes]. \capture safe
/// Source: Hinton and Salakhutdinov 2006, "Reducing the Dimensionality of Data with Neural
/// Networks", without the training by layers.
class Autoencoder final : public WrappedModel {
 public:
  struct Options {
    std::vector<int64_t> sizes = {784, 128, 32};  ///< numbers of a sample, hidden units …, latent
    std::string activation = "relu";              ///< "relu", "gelu" (exact) or "tanh"
    std::string input = "image";                  ///< name in the batch
    Factory<Criterion> loss = {};  ///< none: MSE; with one of shares, such as BCE, samples are in
                                   ///< [0, 1] and the reconstruction is a sigmoid
  };

  /// \throws UsageError  for options out of range
  static void check(const Options& options);

  /// \throws UsageError  for options out of range, and for a loss of classes
  explicit Autoencoder(const Options& options);

  /// Samples of these latent numbers, [B, latent], as [B, numbers of a sample].
  at::Tensor decode(const at::Tensor& latent);
};

/// Variational autoencoder: the encoder gives mean and variance of the latent numbers, which are
/// drawn in training and are their mean otherwise. The loss of a sample is the sum over its numbers
/// of the reconstruction's loss, and beta times the divergence of the latent numbers from a normal
/// distribution. Returns what Autoencoder does, and "reconstruction_loss" and "divergence", the
/// parts of the loss. Numbers drawn from a normal distribution and decoded are new samples.
/// \capture safe
/// Source: Kingma and Welling 2013, arXiv:1312.6114; Higgins et al. 2017 for beta.
class Vae final : public WrappedModel {
 public:
  struct Options {
    std::vector<int64_t> sizes = {784, 256, 16};  ///< numbers of a sample, hidden units …, latent
    std::string activation = "relu";              ///< "relu", "gelu" (exact) or "tanh"
    std::string input = "image";                  ///< name in the batch
    Factory<Criterion> loss = {};                 ///< as that of Autoencoder
    double beta = 1.0;                            ///< >= 0
  };

  /// \throws UsageError  for options out of range
  static void check(const Options& options);

  /// \throws UsageError  for options out of range, and for a loss of classes
  explicit Vae(const Options& options);

  /// Samples of these latent numbers, [B, latent], as [B, numbers of a sample].
  at::Tensor decode(const at::Tensor& latent);
};

}  // namespace rondo
