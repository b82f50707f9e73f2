#include "models/register.h"

namespace rondo {

void register_builtin_models(Registry<Model>& registry) {
  register_mlp(registry);
}

}  // namespace rondo
