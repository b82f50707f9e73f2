#pragma once

#include "core/registry.h"
#include "optim/optimizer.h"

namespace rondo {

void register_sgd(Registry<Optimizer>& registry);
void register_adam(Registry<Optimizer>& registry);
void register_adam_w(Registry<Optimizer>& registry);

/// Every optimizer that a config can name.
void register_builtin_optimizers(Registry<Optimizer>& registry);

}  // namespace rondo
