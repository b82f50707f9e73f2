#pragma once

#include <cstdint>
#include <string>

#include "callbacks/algorithm.h"

namespace rondo {

/// Takes a share of each label away and gives it to all classes alike, for the loss alone:
/// metrics see labels as they are.
/// Source: Szegedy et al. 2016, arXiv:1512.00567, section 7
class LabelSmoothing final : public Algorithm {
 public:
  struct Options {
    double smoothing = 0.1;         ///< share that goes to all classes, in [0, 1]
    std::string target = "label";   ///< in the batch: integers, or shares of classes
    std::string output = "logits";  ///< what the model returns as logits
  };

  explicit LabelSmoothing(const Options& options);

  bool match(Event event, const State& state) const override;
  void apply(Event event, Trainer& trainer) override;

 private:
  Options options_;
};

}  // namespace rondo
