#pragma once

#include "callbacks/core/checkpoint_options.h"
#include "trainer/run_config.h"

namespace rondo {

/// Fills in the options of the run's model that are "auto", each with the fact of its name, also in
/// `init.config_text`: from what the checkpoint that will be loaded knows of its data, else from
/// the training data, else from the data of the first section that has some. Opens that data.
/// Nothing when no option is "auto". \throws ConfigError  naming the option, where it stands and
/// the fact that is not known
void resolve_auto(RunConfig& run, const Registries& registries);

}  // namespace rondo
