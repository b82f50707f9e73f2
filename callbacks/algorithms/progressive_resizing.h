#pragma once

#include <cstdint>
#include <string>

#include "callbacks/algorithm.h"

namespace rondo {

/// Trains on small pictures first, and on larger ones later. Each size has its own recorded
/// step.
/// Source: Touvron et al. 2019, arXiv:1906.06423, and fast.ai; the schedule is Composer's
class ProgressiveResizing final : public Algorithm {
 public:
  struct Options {
    std::string mode = "resize";     ///< "resize": nearest pixels; "crop": a part at random
    double initial_scale = 0.5;      ///< share of the sides at the beginning, in (0, 1]
    double finetune_fraction = 0.2;  ///< share of the run, at its end, with whole pictures
    double delay_fraction = 0.5;     ///< share of the run, at its beginning, with the smallest
    int64_t size_increment = 4;      ///< sides are multiples of it, >= 1
    std::string input = "image";     ///< in the batch: floating [B, channels, height, width]
  };

  explicit ProgressiveResizing(const Options& options);

  bool match(Event event, const State& state) const override;
  void apply(Event event, Trainer& trainer) override;

  /// Pixels of a side of `full` pixels when this share of the run is done.
  int64_t side(int64_t full, double done) const;

 private:
  Options options_;
};

}  // namespace rondo
