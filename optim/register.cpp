#include "optim/register.h"

namespace rondo {

void register_builtin_optimizers(Registry<Optimizer>& registry) {
  register_adam(registry);
  register_adam_w(registry);
  register_sgd(registry);
}

void register_builtin_schedulers(Registry<Scheduler>& registry) {
  register_constant_lr(registry);
  register_cosine_decay_lr(registry);
  register_linear_lr(registry);
  register_sequential_lr(registry);
  register_step_lr(registry);
}

}  // namespace rondo
