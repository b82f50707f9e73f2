#pragma once

#include <chrono>

#include "callbacks/callback.h"
#include "callbacks/not_in_dry_runs.h"
#include "core/timestamp.h"

namespace rondo {

/// Writes how fast a fit was into `<artifact_dir>/performance.json` when it ends: samples, tokens,
/// updates and seconds, their rates, the peak of memory, and saves.
/// Source: SavePerformanceData of Cerebras' ModelZoo trainer.
class SavePerformanceData final : public Callback, public NotInDryRuns {
 public:
  void on_fit_start(Trainer& trainer, const DataLoader&, const Loaders&, Loop&) override;
  void on_fit_end(Trainer& trainer, Loop&) override;

 private:
  Timestamp begin_;
  std::chrono::steady_clock::time_point since_;
};

}  // namespace rondo
