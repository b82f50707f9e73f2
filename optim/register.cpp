#include "optim/register.h"

namespace rondo {

void register_builtin_optimizers(Registry<Optimizer>& registry) {
  register_adam(registry);
  register_adam_w(registry);
  register_sgd(registry);
}

}  // namespace rondo
