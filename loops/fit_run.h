#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "callbacks/cleanup.h"
#include "callbacks/core/checkpoint_options.h"
#include "callbacks/core/loop.h"
#include "callbacks/results.h"
#include "core/stopwatch.h"
#include "core/timestamp.h"
#include "data/data_loader.h"
#include "loops/train_stage.h"
#include "loops/validation_run.h"

namespace rondo {

/// A fit that goes batch by batch: `Trainer::fit` is `while (run.advance()) {}`; or in pieces of
/// time, of a few instructions of a step each. For programs that have a loop of their own, such as
/// games and simulations. At most one per Trainer at a time; it borrows the Trainer.
///
/// Between two pieces a step may be in progress (`is_in_step`): some parameters may have been
/// updated and others not. A program may then do anything that leaves the Trainer alone, and look
/// at its model, which may be between two updates; `request_stop` and `request_save` wait for the
/// end of the update. Saving, validating and changing what steps do are UsageErrors: call
/// `finish_step` before. Between two batches a program may validate and predict with the model as
/// it is, unless the run itself is validating (`is_validating`); a checkpoint cannot be loaded
/// before the fit is over.
class FitRun {
 public:
  /// Enters the fit, loads the checkpoint and builds the data sets, those of `val` too where the
  /// run will validate.
  FitRun(Trainer& trainer,
         DataLoader train,
         Loaders val,
         const LoadFrom& from,
         const FitOptions& options = {});
  FitRun(const FitRun&) = delete;
  FitRun& operator=(const FitRun&) = delete;

  /// Leaves a fit that was not finished, quietly, after the step in progress: errors are logged.
  ~FitRun();

  /// Trains or evaluates one batch, or finishes the one in progress. After an exception the fit is
  /// over. \return false when the run is done
  bool advance();

  /// Goes on until `budget` is used. A training step that is replayed stops after any instruction
  /// and goes on in the next call, so that one instruction at most is too many; the work between
  /// steps (hooks, closures, a save, a validation's batch), and the few steps that are recorded or
  /// compared with eager, are done in one piece. The numbers are those of `advance`, bit for bit.
  /// \return false when the run is done
  bool advance_for(std::chrono::nanoseconds budget);

  /// Finishes the step in progress; nothing when there is none.
  void finish_step();

  /// True when a step is in progress.
  bool is_in_step() const { return stage_ != nullptr && stage_->is_in_step(); }

  /// True while a validation of the run is in progress, from one batch to the next.
  bool is_validating() const { return validation_ != nullptr; }

  /// What was done so far.
  FitResult result() const;

 private:
  void enter(const LoadFrom& from);
  void make_plan();
  void build_validation_data();
  void go_back_in_loggers();
  void note_ended_epoch(const Timestamp& loaded);
  void step(const Deadline& deadline);
  void start_stage();
  void end_stage();
  void start_validation();
  void finish();
  void guarded(const std::function<void()>& work);
  std::exception_ptr leave(std::exception_ptr error);

  Trainer& trainer_;
  DataLoader train_;
  Loaders val_;
  FitOptions options_;
  TrainingLoop* loop_ = nullptr;
  std::unique_ptr<TrainStage> stage_;
  std::unique_ptr<ValidationRun> validation_;
  Cleanup cleanup_;             // of the fit
  Cleanup validation_cleanup_;  // of the interleaved validate_all
  bool is_done_ = false;
  bool was_already_done_ = false;
  std::string stop_reason_;  // why it ended early
  int64_t first_update_ = 0;
  SaveStats saves_before_;
  double seconds_before_ = 0.0;  // training seconds of earlier processes
  Stopwatch watch_;
  double seconds_ = 0.0;  // that it took, once it is over
};

}  // namespace rondo
