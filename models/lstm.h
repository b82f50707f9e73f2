#pragma once

#include <cstdint>

#include "models/wrapped_model.h"

namespace rondo {

/// Recurrent network that predicts the next token. Sees "tokens" and "targets", int64 [B, T]; each
/// sequence begins with a state of zeros. The steps are plain tensor operators, the same in every
/// LibTorch version. Returns "loss", the mean cross entropy, when the batch has targets, and
/// "logits", [B, T, vocabulary]; throws ShapeError when tokens are not [B, T] with T >= 1.
/// \capture baked: the number of steps
/// Source: Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000.
class Lstm final : public WrappedModel {
 public:
  struct Options {
    int64_t layers = 1;       ///< >= 1
    int64_t width = 128;      ///< of embedding and state, >= 1
    int64_t vocabulary = 65;  ///< tokens are 0 … vocabulary-1, >= 1
    double dropout = 0.0;     ///< of what each layer but the last gives on, in [0, 1)
  };

  /// \throws UsageError  for options out of range
  explicit Lstm(const Options& options);
};

}  // namespace rondo
