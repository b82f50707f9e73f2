#pragma once

#include "core/registry.h"
#include "models/losses/criterion.h"

namespace rondo {

void register_class_losses(Registry<Criterion>& registry);
void register_share_losses(Registry<Criterion>& registry);
void register_value_losses(Registry<Criterion>& registry);

/// Every loss that a config can name without a plugin.
inline void register_builtin_losses(Registry<Criterion>& registry) {
  register_class_losses(registry);
  register_share_losses(registry);
  register_value_losses(registry);
}

}  // namespace rondo
