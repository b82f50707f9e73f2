#pragma once

#include "core/registry.h"
#include "optim/optimizer.h"
#include "optim/scheduler.h"

namespace rondo {

/// Every optimizer that a config can name.
void register_builtin_optimizers(Registry<Optimizer>& registry);

/// Those that consist of others.
/// \param registry  where parts are looked up too: it must stay where it is
void register_schedule_products(Registry<Scheduler>& registry);
void register_sequential_lr(Registry<Scheduler>& registry);

/// Every scheduler that a config can name.
void register_builtin_schedulers(Registry<Scheduler>& registry);

}  // namespace rondo
