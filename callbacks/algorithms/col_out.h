#pragma once

#include <cstdint>
#include <string>

#include "callbacks/algorithm.h"

namespace rondo {

/// Takes rows and columns out of the pictures, the same for a whole batch, which become
/// smaller. A target of the same height and width loses the same ones.
/// Source: Composer's ColOut
class ColOut final : public Algorithm {
 public:
  struct Options {
    double p_row = 0.15;           ///< share of the rows that goes, in [0, 1)
    double p_col = 0.15;           ///< share of the columns
    std::string input = "image";   ///< in the batch: floating [B, channels, height, width]
    std::string target = "label";  ///< in the batch: integers, or shares of classes
  };

  explicit ColOut(const Options& options);

  bool match(Event event, const State& state) const override;
  void apply(Event event, Trainer& trainer) override;

 private:
  Options options_;
};

}  // namespace rondo
