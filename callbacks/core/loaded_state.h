#pragma once

#include <filesystem>

#include "callbacks/core/checkpoint_options.h"
#include "core/state_dict.h"

namespace rondo {

class Trainer;

/// Makes of what a file holds the state that the run is given: of another program's file the
/// weights, and what the options leave, all in this model's names.
/// \param options  of a file that the run begins with; null: all of it is meant
/// \return true when the file gives the model any of its parameters and buffers
/// \throws CheckpointError  when weights are not found, or none of them is the model's
bool prepare_loaded_state(Trainer& trainer,
                          const std::filesystem::path& path,
                          const LoadOptions* options,
                          StateDict& state);

}  // namespace rondo
