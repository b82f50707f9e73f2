#pragma once

#include "callbacks/callback.h"

namespace rondo {

/// Logs the share of zeros on log steps: `sparsity/<parameter>/target`, which the schedule asks for
/// now, and `sparsity/<parameter>/actual`, which the mask has; the same of all masked weights
/// together as `sparsity/total/…`. Nothing without sparsity.
/// Source: LogSparsity of Cerebras' ModelZoo trainer.
class LogSparsity final : public Callback {
 public:
  void on_train_batch_end(Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t) override;
};

}  // namespace rondo
