#include "models/register.h"

namespace rondo {

void register_builtin_models(Registry<Model>& registry, const Registry<Criterion>& losses) {
  register_mlp(registry, losses);
  register_cnn(registry, losses);
  register_resnet(registry, losses);
  register_lstm(registry, losses);
  register_gpt(registry, losses);
  register_script_model(registry);
  register_table_mlp(registry, losses);
  register_deep_resnet(registry, losses);
  register_mobile_net(registry, losses);
  register_vit(registry, losses);
  register_u_net(registry, losses);
  register_forecaster(registry, losses);
  register_autoencoder(registry, losses);
  register_diffusion(registry);
}

}  // namespace rondo
