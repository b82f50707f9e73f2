#pragma once

#include <cstdint>
#include <string>

#include "models/losses/criterion.h"
#include "models/wrapped_model.h"

namespace rondo {

/// Predicts the next values of a time series from those before. Sees a window, floating
/// [B, T, features], or [B, T] where there is one feature, and what follows it, [B, horizon], or
/// [B, horizon, targets] where there are several targets. Returns "loss" when the batch has what
/// follows, and "prediction" of its shape; with a loss of several quantiles these are one more last
/// dimension.
///
/// The body is a stack of residual blocks of causal dilated convolutions ("tcn"), whose receptive
/// field is 1 + 2 · (kernel - 1) · (2^layers - 1) steps, or recurrent layers ("lstm", "gru"). A
/// linear layer makes the prediction of what the body gives for the last step.
/// \capture baked: the length of a window
/// Source: Bai et al. 2018, arXiv:1803.01271, without the weight norm; Hochreiter and Schmidhuber
/// 1997; Cho et al. 2014, arXiv:1406.1078.
class Forecaster final : public WrappedModel {
 public:
  struct Options {
    std::string body = "tcn";      ///< "tcn", "lstm" or "gru"
    int64_t features = 1;          ///< numbers of a step that are seen, >= 1
    int64_t targets = 1;           ///< numbers of a step that are predicted, >= 1
    int64_t horizon = 1;           ///< steps that are predicted, >= 1
    int64_t layers = 3;            ///< >= 1
    int64_t width = 32;            ///< channels or state of each layer, >= 1
    int64_t kernel = 3;            ///< steps that a convolution sees, >= 2
    double dropout = 0.0;          ///< in [0, 1)
    std::string input = "series";  ///< name of the window in the batch
    std::string label = "target";  ///< name of what follows
    Factory<Criterion> loss = {};  ///< of values; none: MSE
  };

  /// \throws UsageError  for options out of range
  static void check(const Options& options);

  /// \throws UsageError  for options out of range, and for a loss of classes
  explicit Forecaster(const Options& options);
};

}  // namespace rondo
