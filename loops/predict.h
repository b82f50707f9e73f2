#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "callbacks/callback.h"
#include "callbacks/core/checkpoint_options.h"
#include "callbacks/core/loop.h"
#include "callbacks/results.h"

namespace rondo {

/// How `predict` goes through a loader, and what becomes of the outputs. `predictions.csv` has a
/// line for each sample that was predicted (loops/prediction_table.h), unless `write` takes all.
struct PredictOptions {
  std::optional<int64_t> subset_num_batches = {};  ///< the first so many batches, >= 1; absent: all
  /// Whether outputs are joined, returned and written as one file. If not, memory holds one batch.
  bool return_outputs = true;
  /// Takes the outputs of each batch on the host, which are its own to keep. Without one, and where
  /// nothing is returned, they are written to `<artifact_dir>/predictions/batch_000000.pt` and so
  /// on.
  std::function<void(const Outputs& outputs, int64_t batch_idx)> write = {};
};

/// Implements `Trainer::predict`. \return the outputs; empty, and nothing written, if a stop
/// interrupted the pass
Outputs predict(Trainer& trainer, const DataLoader& loader, const LoadFrom& from);

/// The same in pieces, or of a part of the loader. Files of single batches stay when a stop leaves
/// batches out.
/// \return nothing without `return_outputs`
/// \throws UsageError  for options out of range
Outputs predict(Trainer& trainer,
                const DataLoader& loader,
                const PredictOptions& options,
                const LoadFrom& from = {});

/// As `Trainer::validate_all`, with another loop than the Trainer's: so many batches, or hooks of
/// another family. No row is taken from earlier calls.
/// \throws UsageError  as `Trainer::validate_all`
ValidationTable validate_all(Trainer& trainer,
                             const Loaders& loaders,
                             const std::vector<std::string>& globs,
                             ValidationLoop& loop,
                             const ValidateAllOptions& options = {});

}  // namespace rondo
