#pragma once

#include "core/registry.h"
#include "loops/train_step.h"

namespace rondo {

struct SamOptions {
  double rho = 0.05;  ///< > 0: L2 norm of the way to the neighbouring weights
};

/// Sharpness-aware minimisation: the gradients are those at neighbouring weights, where the loss is
/// higher. In a group of batches each one has its own neighbour. Forward runs twice: its hooks fire
/// twice, batch norm updates its statistics twice, and dropout draws another mask the second time.
/// Source: Foret et al. 2021, arXiv:2010.01412, Algorithm 1; of a batch of a group:
/// section 4.1, m-sharpness
class Sam final : public TrainStep {
 public:
  using Options = SamOptions;

  explicit Sam(const Options& options) : options_(options) {}

  /// \throws UsageError  with several optimizers
  void setup(Trainer& trainer) override;

  Outputs run(StepContext& step, const Batch& batch) override;

 private:
  Options options_;
};

void register_sam(Registry<TrainStep>& registry);

}  // namespace rondo
