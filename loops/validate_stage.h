#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "callbacks/cleanup.h"
#include "callbacks/core/checkpoint_options.h"
#include "callbacks/core/loop.h"
#include "callbacks/global_callbacks.h"
#include "core/name_scopes.h"
#include "data/data_executor.h"
#include "data/data_loader.h"
#include "loops/running_stage.h"
#include "loops/validation_hooks.h"

namespace rondo {

class Trainer;

/// Batches of a validation of `loader`, where that is known. Builds its data set; what that draws
/// follows from the run's seed alone, so that the time at which it is built changes no number.
/// \throws DataError   when the data set cannot be built
/// \throws UsageError  when `eval_steps` is a share of a pass whose size is not known
std::optional<int64_t> batches_of_validation(Trainer& trainer,
                                             const DataLoader& loader,
                                             const Loop& loop);

/// The validation of one loader.
class ValidateStage {
 public:
  /// \param loop  one that is not the Trainer's own is registered globally for the time of the
  /// stage
  /// \throws UsageError  within another validation
  ValidateStage(Trainer& trainer, const DataLoader& loader, Loop& loop, LoadFrom from);
  ~ValidateStage();

  /// Has the ranks of the run share a pass whose hooks are not those of validations, which they
  /// share where they can. All of them call it.
  /// \param finish  called after the last batch of this rank
  void share(std::function<void()> finish) { finish_ = std::move(finish); }

  /// All of it, from `begin` to `end`. \return false when a stop came before every batch was
  /// evaluated
  bool run();

  /// Fires the enter and start hooks and loads the checkpoint.
  void begin();

  /// Evaluates one batch.
  /// \return false when the stage is over
  bool advance();

  /// Fires the end hook and leaves the stage. Tells of a pass that has no result.
  void end();

  /// Leaves the stage because of `error`.
  /// \return the exception to go on with
  std::exception_ptr fail(std::exception_ptr error);

 private:
  const Outputs& run_named_step(const Batch& batch);
  const Outputs& run_step(const Batch& batch);
  void tell_what_is_missing() const;
  RankRange ranks_of_pass() const;
  int64_t number() const;
  int64_t own_batches(int64_t all) const;
  void agree();

  Trainer& trainer_;
  const DataLoader& loader_;
  Loop& loop_;
  LoadFrom from_;
  ValidationHooks fire_;
  std::function<void()> finish_;  // empty: `share` was not called
  RankRange ranks_;               // that share the pass
  int64_t batch_idx_ = 0;         // among those of this process
  bool is_whole_ = false;
  std::optional<NameScope> scope_;
  std::optional<GlobalCallbackScope> global_loop_;
  Cleanup cleanup_;
  std::unique_ptr<BatchStream> stream_;
  std::unique_ptr<DataExecutor> executor_;
  std::optional<RunningStage> running_;
};

}  // namespace rondo
