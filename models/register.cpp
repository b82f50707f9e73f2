#include "models/register.h"

namespace rondo {

void register_builtin_models(Registry<Model>& registry) {
  register_mlp(registry);
  register_cnn(registry);
  register_resnet(registry);
  register_lstm(registry);
  register_gpt(registry);
  register_script_model(registry);
  register_table_mlp(registry);
}

}  // namespace rondo
