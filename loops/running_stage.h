#pragma once

namespace rondo {

class DataExecutor;
class Trainer;

/// Says in a Trainer's State which stage runs. The stage that ran before, a training within which
/// something is validated, goes on when this one is gone.
class RunningStage {
 public:
  RunningStage(Trainer& trainer, bool is_training);
  RunningStage(const RunningStage&) = delete;
  RunningStage& operator=(const RunningStage&) = delete;
  ~RunningStage();

  /// \param executor  borrowed for as long as the stage runs
  void use(DataExecutor& executor);

 private:
  Trainer& trainer_;
  DataExecutor* executor_before_;
  bool was_training_;
};

}  // namespace rondo
