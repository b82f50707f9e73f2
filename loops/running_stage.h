#pragma once

#include <string>

#include "core/tensor_map.h"
#include "core/timestamp.h"

namespace rondo {

class DataExecutor;
class DataLoader;
class Trainer;

/// Says in a Trainer's State which stage runs. The stage that ran before, a training within which
/// something is validated, goes on when this one is gone.
class RunningStage {
 public:
  /// \param loader  borrowed for as long as the stage runs
  RunningStage(Trainer& trainer, const DataLoader& loader, bool is_training);
  RunningStage(const RunningStage&) = delete;
  RunningStage& operator=(const RunningStage&) = delete;
  ~RunningStage();

  /// \param executor  borrowed for as long as the stage runs
  void use(DataExecutor& executor);

 private:
  Trainer& trainer_;
  DataExecutor* executor_before_;
  bool was_training_;
  Batch* batch_before_;
  const DataLoader* loader_before_;
  std::string label_before_;
  Timestamp pass_before_;
};

}  // namespace rondo
