#pragma once

#include <cstdint>
#include <string>

#include "callbacks/algorithm.h"

namespace rondo {

/// Stops training the first layers of the model, more of them after each epoch; the last layer
/// with parameters is always trained. Optimizers keep the state of what is frozen.
/// Source: Raghu et al. 2017, arXiv:1706.05806, section 4 (freeze training); the schedule is
/// Composer's
class LayerFreezing final : public Algorithm {
 public:
  struct Options {
    double freeze_start = 0.5;  ///< share of the run after which layers are frozen, in [0, 1)
    double freeze_level = 1.0;  ///< share of the layers that are frozen at the end, in [0, 1]
  };

  explicit LayerFreezing(const Options& options);

  bool match(Event event, const State& state) const override;
  void apply(Event event, Trainer& trainer) override;

  /// Layers that are frozen, of so many, when this share of the run is done.
  int64_t depth(int64_t layers, double done) const;

  StateDict save_state() const override;
  void load_state(const StateDict& state) override;

 private:
  Options options_;
  int64_t frozen_ = 0;  // layers
};

}  // namespace rondo
