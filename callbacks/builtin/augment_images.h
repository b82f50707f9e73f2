#pragma once

#include <cstdint>
#include <string>

#include "callbacks/callback.h"

namespace rondo {

/// Changes the pictures of training batches by chance, in the step: a replay draws other numbers
/// each time, a resumed run the same ones, and no thread of the loader is needed. Validations see
/// pictures as they are. In the order of the options; one that is 0 is left out.
class AugmentImages final : public Callback {
 public:
  struct Options {
    std::string input = "image";  ///< in the batch: floating [B, channels, height, width]
    double flip = 0.0;            ///< chance that left and right are exchanged, in [0, 1]
    int64_t shift = 0;            ///< most pixels that a picture moves along each side, >= 0
    double brightness = 0.0;      ///< values are multiplied by 1 ± this, in [0, 1]
    double contrast = 0.0;        ///< the same for differences from the mean
    double erase = 0.0;           ///< chance that a rectangle is set to zero, in [0, 1]
  };

  explicit AugmentImages(const Options& options);

  void on_before_forward(Trainer&, Model& model, const Batch&, Batch& input) override;

 private:
  Options options_;
};

}  // namespace rondo
