#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "metrics/sums_metric.h"

namespace rondo {

/// The mean loss of a token in nats: each batch counts by its tokens, without those that the loss
/// ignores. What derives from it says it in other units.
class TokenLoss : public SumsMetric {
 public:
  struct Options {
    std::string output = "loss";               ///< mean loss over the targets of a batch, 0-dim
    std::string targets = "targets";           ///< in the batch
    std::optional<int64_t> ignore_index = {};  ///< does not count; none: what the loss leaves out
  };

  explicit TokenLoss(const Options& options);

  std::optional<Better> better() const final { return Better::Lower; }

  void ignore(int64_t label) final {
    options_.ignore_index = options_.ignore_index.value_or(label);
  }

  Needs needs() const final { return {{options_.output}, {options_.targets}}; }

  /// \throws ShapeError  when the output has dimensions
  /// \capture safe
  void update(const Outputs& outputs, const Batch& batch) final;

 protected:
  double nats() const;

 private:
  Options options_;
};

/// The exponential of the mean loss of a token.
class Perplexity final : public TokenLoss {
 public:
  explicit Perplexity(const Options& options) : TokenLoss(options) {}

  std::string name() const override { return "perplexity"; }

  double compute() const override;
};

/// The mean loss of a byte in bits.
class BitsPerByte final : public TokenLoss {
 public:
  struct Options : TokenLoss::Options {
    double bytes_per_token = 1.0;  ///< mean length of a token of the data, > 0
  };

  explicit BitsPerByte(const Options& options);

  std::string name() const override { return "bits_per_byte"; }

  double compute() const override;

 private:
  double bytes_per_token_;
};

}  // namespace rondo
