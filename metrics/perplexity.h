#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "metrics/metric.h"

namespace rondo {

/// The exponential of the mean loss of a token, the loss in nats: each batch counts by its tokens,
/// without those that the loss ignores.
class Perplexity final : public Metric {
 public:
  struct Options {
    std::string output = "loss";      ///< mean loss over the targets of a batch, 0-dim
    std::string targets = "targets";  ///< in the batch
    int64_t ignore_index = -100;  ///< a target that does not count, as LibTorch's losses have it
  };

  explicit Perplexity(const Options& options);

  std::string name() const override { return "perplexity"; }

  std::optional<Better> better() const override { return Better::Lower; }

  /// \throws ShapeError  when the output has dimensions
  /// \capture safe
  void update(const Outputs& outputs, const Batch& batch) override;

  double compute() const override;
  std::vector<NamedTensor> state() override;
  void reset() override;
  void to(c10::Device device) override;

 private:
  Options options_;
  at::Tensor total_;   // float64 [], nats
  at::Tensor tokens_;  // float64 []
};

}  // namespace rondo
