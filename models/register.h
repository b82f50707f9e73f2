#pragma once

#include "core/registry.h"
#include "models/losses/criterion.h"
#include "models/model.h"

namespace rondo {

void register_autoencoder(Registry<Model>& registry, const Registry<Criterion>& losses);
void register_cnn(Registry<Model>& registry, const Registry<Criterion>& losses);
void register_deep_resnet(Registry<Model>& registry, const Registry<Criterion>& losses);
void register_diffusion(Registry<Model>& registry);
void register_forecaster(Registry<Model>& registry, const Registry<Criterion>& losses);
void register_gpt(Registry<Model>& registry, const Registry<Criterion>& losses);
void register_lstm(Registry<Model>& registry, const Registry<Criterion>& losses);
void register_mlp(Registry<Model>& registry, const Registry<Criterion>& losses);
void register_mobile_net(Registry<Model>& registry, const Registry<Criterion>& losses);
void register_resnet(Registry<Model>& registry, const Registry<Criterion>& losses);
void register_script_model(Registry<Model>& registry);
void register_table_mlp(Registry<Model>& registry, const Registry<Criterion>& losses);
void register_u_net(Registry<Model>& registry, const Registry<Criterion>& losses);
void register_vit(Registry<Model>& registry, const Registry<Criterion>& losses);

/// Every model that a config can name without a plugin.
/// \param losses  those that their option `loss` can name; outlives the registry
void register_builtin_models(Registry<Model>& registry, const Registry<Criterion>& losses);

}  // namespace rondo
