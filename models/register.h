#pragma once

#include "core/registry.h"
#include "models/model.h"

namespace rondo {

void register_cnn(Registry<Model>& registry);
void register_gpt(Registry<Model>& registry);
void register_lstm(Registry<Model>& registry);
void register_mlp(Registry<Model>& registry);
void register_resnet(Registry<Model>& registry);
void register_script_model(Registry<Model>& registry);
void register_table_mlp(Registry<Model>& registry);

/// Every model that a config can name without a plugin.
void register_builtin_models(Registry<Model>& registry);

}  // namespace rondo
