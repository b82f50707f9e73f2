#pragma once

#include "loops/train_step.h"

namespace rondo {

/// Forward, backward and, on the last batch of a group, the update of each optimizer.
class StandardStep final : public TrainStep {
 public:
  Outputs run(StepContext& step, const Batch& batch) override;
};

}  // namespace rondo
