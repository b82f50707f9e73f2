#pragma once

#include "core/registry.h"
#include "models/model.h"

namespace rondo {

void register_mlp(Registry<Model>& registry);

/// Every model that a config can name without a plugin.
void register_builtin_models(Registry<Model>& registry);

}  // namespace rondo
