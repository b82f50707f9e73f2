#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>

#include "callbacks/cleanup.h"
#include "data/data_executor.h"
#include "data/data_loader.h"

namespace rondo {

class Loop;
class Trainer;

/// A stretch of training between two validations.
class TrainStage {
 public:
  /// \param loop_idx  number of the stretch in the run, from 0
  TrainStage(Trainer& trainer, const DataLoader& loader, Loop& loop, int64_t loop_idx);
  ~TrainStage();

  /// Fires the enter and start hooks.
  void begin();

  /// Trains one batch.
  /// \return false when the stretch is over
  bool advance();

  /// Fires the end hook and leaves the stretch.
  void end();

  /// Leaves the stretch because of `error`.
  /// \return the exception to go on with
  std::exception_ptr fail(std::exception_ptr error);

 private:
  std::optional<Batch> fetch();
  const Outputs& run_step(const Batch& batch);

  Trainer& trainer_;
  const DataLoader& loader_;
  Loop& loop_;
  int64_t loop_idx_;
  int64_t batch_idx_ = 0;
  bool ends_epoch_ = false;  // of the current batch
  Cleanup cleanup_;
  std::unique_ptr<DataExecutor> executor_;
};

}  // namespace rondo
