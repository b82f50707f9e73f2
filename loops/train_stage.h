#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>

#include "callbacks/cleanup.h"
#include "callbacks/core/reproducibility_callback.h"
#include "core/timestamp.h"
#include "data/data_executor.h"
#include "data/data_loader.h"
#include "loops/group_undo.h"
#include "loops/running_stage.h"

namespace rondo {

class Loop;
class Trainer;

/// A stage of training between two validations.
class TrainStage {
 public:
  /// \param loop_idx  number of the stage in the run, from 0
  TrainStage(Trainer& trainer, const DataLoader& loader, Loop& loop, int64_t loop_idx);
  ~TrainStage();

  /// Fires the enter and start hooks.
  void begin();

  /// Trains one batch, or finishes the one in progress.
  /// \return false when the stage is over
  bool advance();

  /// Trains until the deadline has passed, and not beyond the end of a batch: the step may be in
  /// progress then, and the next call goes on with it.
  /// \return false when the stage is over
  bool advance_until(const Deadline& deadline);

  /// True between two pieces of a step.
  bool is_in_step() const { return batch_.has_value(); }

  /// Fires the end hook and leaves the stage.
  void end();

  /// Leaves the stage because of `error`.
  /// \return the exception to go on with
  std::exception_ptr fail(std::exception_ptr error);

 private:
  std::optional<Batch> fetch();
  void begin_batch();
  const Outputs* compute(bool is_new, const Deadline& deadline);
  template <class Run>
  const Outputs* run_step(const Run& run);
  bool end_batch(const Outputs& outputs);
  bool is_cut_smaller(const std::exception_ptr& error);
  Timestamp advanced(Timestamp time) const;

  Trainer& trainer_;
  const DataLoader& loader_;
  Loop& loop_;
  int64_t loop_idx_;
  int64_t batch_idx_ = 0;
  bool ends_epoch_ = false;           // of the current batch
  bool begins_group_ = true;          // the next batch that is begun is the first of an update
  Timestamp::Advance counts_;         // of the current batch
  int64_t batches_elsewhere_ = 0;     // that end with it
  std::optional<RankRandom> random_;  // of a virtual rank, while its step runs
  bool ran_body_ = false;             // its step was run as written, so that it left the gradients
  std::optional<Batch> batch_;        // the one in progress
  std::unique_ptr<GroupUndo> undo_;   // where running out of memory halves micro-batches
  int64_t first_of_group_ = 0;        // batch_idx_ of it
  bool begins_again_ = false;         // the next batch is the first of a group that was undone
  double seconds_ = 0.0;              // that it took so far
  Cleanup cleanup_;
  std::unique_ptr<DataExecutor> executor_;
  std::optional<RunningStage> running_;
};

}  // namespace rondo
