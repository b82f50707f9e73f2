#pragma once

#include <optional>

#include "data/data_loader.h"

namespace rondo {

class Trainer;

/// The threads that an earlier fit in this model directory found best for this run, machine and
/// LibTorch; nothing when there was none, or something of these is another now.
std::optional<int> recorded_threads(const Trainer& trainer);

/// Trains a few updates under 1, 2, 4 … threads, up to the cores that the process may use, each
/// from the run's beginning and in a directory that is gone afterwards, and records the fastest in
/// `<model_dir>/threads.json`. More threads must gain 5 % to be taken.
int calibrate_threads(const Trainer& trainer, const DataLoader& train);

}  // namespace rondo
