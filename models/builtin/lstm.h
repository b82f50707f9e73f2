#pragma once

#include <cstdint>

#include "core/auto_option.h"
#include "core/dataset_facts.h"
#include "models/losses/criterion.h"
#include "models/wrapped_model.h"

namespace rondo {

/// Options of Lstm and Gru.
struct RecurrentOptions {
  int64_t layers = 1;             ///< >= 1
  int64_t width = 128;            ///< of embedding and state, >= 1
  Auto<int64_t> vocabulary = 65;  ///< tokens are 0 … vocabulary-1, >= 1
  double dropout = 0.0;           ///< of what each layer but the last gives on, in [0, 1)
  Factory<Criterion> loss = {};   ///< none: cross entropy
};

/// Recurrent network that predicts the next token. Sees "tokens" and "targets", int64 [B, T]; each
/// sequence begins with a state of zeros. The steps are plain tensor operators, the same in every
/// LibTorch version. Returns "loss", the mean cross entropy, when the batch has targets, and
/// "logits", [B, T, vocabulary]; throws ShapeError when tokens are not [B, T] with T >= 1.
/// \capture baked: the number of steps
/// Source: Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000.
class Lstm final : public WrappedModel {
 public:
  using Options = RecurrentOptions;

  /// \throws UsageError  for options out of range
  explicit Lstm(const Options& options);

  /// Fills in what is "auto".
  /// \throws UsageError  naming the option that the data does not know
  static void resolve(Options& options, const DatasetFacts& facts);
};

/// The same with the GRU of PyTorch, whose reset gate comes after the product.
/// \capture baked: the number of steps
/// Source: Cho et al. 2014, arXiv:1406.1078.
class Gru final : public WrappedModel {
 public:
  using Options = RecurrentOptions;

  /// \throws UsageError  for options out of range
  explicit Gru(const Options& options);

  /// Fills in what is "auto".
  /// \throws UsageError  naming the option that the data does not know
  static void resolve(Options& options, const DatasetFacts& facts);
};

}  // namespace rondo
