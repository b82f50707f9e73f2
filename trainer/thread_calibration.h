#pragma once

#include <filesystem>
#include <optional>

#include "data/data_loader.h"

namespace rondo {

class Trainer;

/// The threads that an earlier fit in this model directory found best for this step, machine and
/// LibTorch; nothing when there was none, or something of these is another now. A step is what the
/// config says of it: its length, logs, saves and seed may change. Of a run that was built in code
/// it is the parameters, the batch, the names of model and optimizer, and what the options say of
/// backend, precision and accumulation.
std::optional<int> recorded_threads(const Trainer& trainer, const DataLoader& train);

/// The threads of the last fit in a model directory with `backend.threads = "auto"`, whatever the
/// circumstances: what looks at the run in another directory runs under the same.
std::optional<int> threads_of_run(const std::filesystem::path& model_dir);

/// Writes down that the run uses so many threads, for `threads_of_run`.
void note_threads(const Trainer& trainer, int threads);

/// Trains a few updates under 1, 2, 4 … threads, up to the cores that the process may use, each
/// from what the run has loaded and in a directory that is gone afterwards, and records the fastest
/// (`time_in_turns`) in `<model_dir>/threads.json`. Never fails the run: what goes wrong ends the
/// training under one number of threads, and when no update could be timed 1 is taken, with a
/// warning, and nothing recorded.
/// \return nothing when the run was asked to stop
std::optional<int> calibrate_threads(const Trainer& trainer, const DataLoader& train);

}  // namespace rondo
