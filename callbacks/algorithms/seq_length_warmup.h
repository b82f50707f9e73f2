#pragma once

#include <cstdint>
#include <string>

#include "callbacks/algorithm.h"

namespace rondo {

/// Trains on the beginnings of sequences first, and on longer ones later. Each length has its
/// own recorded step.
/// Source: Li et al. 2021, arXiv:2108.06084
class SeqLengthWarmup final : public Algorithm {
 public:
  struct Options {
    double duration = 0.3;          ///< share of the run in which lengths grow, in (0, 1]
    int64_t min_seq_length = 8;     ///< at the beginning, >= 1
    int64_t max_seq_length = 1024;  ///< when it is over
    int64_t step_size = 8;          ///< lengths grow by it, >= 1
    bool truncate = true;          ///< cut sequences off; else make more of them, which are shorter
    std::string input = "tokens";  ///< in the batch: [B, length]; what has its length is cut too
  };

  explicit SeqLengthWarmup(const Options& options);

  bool match(Event event, const State& state) const override;
  void apply(Event event, Trainer& trainer) override;

  /// Length of a sequence when this share of the run is done.
  int64_t length(double done) const;

 private:
  Options options_;
};

}  // namespace rondo
