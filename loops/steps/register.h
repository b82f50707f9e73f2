#pragma once

#include "core/registry.h"
#include "loops/train_step.h"
#include "models/model.h"

namespace rondo {

/// Adds all of rondo's own step bodies. \param models  what a teacher can be; outlives `registry`
void register_builtin_steps(Registry<TrainStep>& registry, const Registry<Model>& models);

}  // namespace rondo
