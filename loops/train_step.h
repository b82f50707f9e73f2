#pragma once

#include <string>

#include "core/tensor_map.h"

namespace rondo {

class Trainer;

/// One training step, the unit that is recorded: forward, backward and, at the end of a group of
/// batches, clipping, optimizer, zero_grad and schedulers, with every in-step hook at its place.
/// Reads the batch's place in its group from `trainer.state().phase`.
Outputs train_step(Trainer& trainer, const Batch& batch);

/// One validation step: forward without gradients, between its in-step hooks.
/// \param hook  family of the hooks around it, "validate" by default
Outputs validate_step(Trainer& trainer, const Batch& batch, const std::string& hook);

}  // namespace rondo
