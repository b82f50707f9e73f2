#pragma once

#include "callbacks/callback.h"

namespace rondo {

/// Logs on log steps what the model is given: `input/<name>/mean`, `/std`, `/min` and `/max` of
/// each tensor of a training batch. Source: LogInputSummaries of Cerebras' ModelZoo trainer.
class LogInputSummaries final : public Callback {
 public:
  void on_before_forward(Trainer& trainer, Model&, const Batch&, Batch& input) override;
};

}  // namespace rondo
