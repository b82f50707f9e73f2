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

/// A fit that the caller drives: batch by batch (`Trainer::fit` is `while (run.advance()) {}`), or
/// in time slices as short as a few instructions of a step. For programs with their own main loop,
/// such as games and simulations. Borrows the Trainer, which can run only one fit at a time.
///
/// Between two slices a step may be in progress (`is_in_step`): some parameters may be updated and
/// others not. The program may then read the model; `request_stop` and `request_save` take effect
/// at the end of the update. Saving, validating and changing what steps do throw UsageError: call
/// `finish_step` first. Between two batches a program may validate and predict with the current
/// model, unless the run itself is validating (`is_validating`). A checkpoint can only be loaded
/// after the fit.
class FitRun {
 public:
  /// Enters the fit, loads the checkpoint and builds the data sets, including those of `val` if the
  /// run will validate.
  FitRun(Trainer& trainer,
         DataLoader train,
         Loaders val,
         const LoadFrom& from,
         const FitOptions& options = {});
  FitRun(const FitRun&) = delete;
  FitRun& operator=(const FitRun&) = delete;

  /// Leaves an unfinished fit after the step in progress. Logs errors instead of throwing them.
  ~FitRun();

  /// Trains or evaluates one batch, or finishes the one in progress. After an exception the fit is
  /// over. \return false when the run is done
  bool advance();

  /// Runs until `budget` is used up. A replayed training step can pause after any instruction and
  /// resume in the next call, so the overrun is at most one instruction. Work between steps (hooks,
  /// closures, a save, a validation batch) and the few steps that are recorded or compared with
  /// eager run in one piece. The results equal those of `advance`, bit for bit.
  /// \return false when the run is done
  bool advance_for(std::chrono::nanoseconds budget);

  /// Finishes the step in progress; does nothing when there is none.
  void finish_step();

  /// True when a step is in progress.
  bool is_in_step() const { return stage_ != nullptr && stage_->is_in_step(); }

  /// True while a validation of the run is in progress, from one batch to the next.
  bool is_validating() const { return validation_ != nullptr; }

  /// The result so far.
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
  int64_t skipped_before_ = 0;  // updates, by loss scaling
  SaveStats saves_before_;
  double seconds_before_ = 0.0;  // training seconds of earlier processes
  Stopwatch watch_;
  double seconds_ = 0.0;  // duration of the fit, once it is over
};

}  // namespace rondo
