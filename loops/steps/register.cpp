#include "loops/steps/register.h"

#include "loops/steps/distillation.h"
#include "loops/steps/sam.h"
#include "loops/steps/standard_step.h"

namespace rondo {

void register_builtin_steps(Registry<TrainStep>& registry, const Registry<Model>& models) {
  registry.add<StandardStep>("StandardStep", "Forward, backward and the update of each optimizer.");
  register_sam(registry);
  register_distillation(registry, models);
}

}  // namespace rondo
