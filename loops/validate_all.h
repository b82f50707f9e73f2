#pragma once

#include <string>
#include <vector>

#include "callbacks/callback.h"
#include "callbacks/checkpoint_options.h"
#include "loops/loop.h"
#include "trainer/results.h"

namespace rondo {

/// Evaluates one loader, after loading a checkpoint where there is one.
/// \param own  a loop of the caller's; null for the Trainer's own
/// \return its metrics, with their scope
Metrics validate(Trainer& trainer,
                 const DataLoader& loader,
                 const LoadFrom& from,
                 ValidationLoop* own = nullptr);

/// Evaluates every loader with each checkpoint in turn, and writes the table to validate_all.csv
/// and .json in the artifact directory. A warning and an empty table when there is nothing to
/// evaluate.
ValidationTable validate_all(Trainer& trainer,
                             const Loaders& loaders,
                             const std::vector<LoadFrom>& checkpoints);

/// The files that match the globs, each once, by the number in their name, then by name. Wildcards
/// stand in the last component of a path only.
/// \throws IoError  naming the pattern that matches nothing
Paths matching_checkpoints(const std::vector<std::string>& globs);

}  // namespace rondo
