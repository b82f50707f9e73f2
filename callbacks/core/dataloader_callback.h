#pragma once

#include <memory>
#include <optional>

#include "callbacks/callback.h"
#include "core/stopwatch.h"
#include "data/grouped_stream.h"

namespace rondo {

/// Holds the training data for the time of a fit; fills slot `dataloader`. The position that is
/// saved counts what was consumed, not what was read ahead. A fit that resumes where its epoch has
/// no batch left, with other batches or another data set, begins with the next epoch.
class DataloaderCallback : public CoreCallback {
 public:
  static constexpr const char* kSlot = "dataloader";

  void on_enter_fit(Trainer&, Cleanup&, const DataLoader& train, const Loaders&, Loop&) override;
  void on_fit_start(Trainer& trainer, const DataLoader& train, const Loaders&, Loop&) override;
  void on_train_batch_end(Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t) override;
  void on_train_end(Trainer& trainer, Model&, Loop&, int64_t) override;
  void on_save_checkpoint(Trainer& trainer, StateDict& state) override;
  void check_checkpoint(Trainer& trainer, const StateDict& state) override;
  void on_load_checkpoint(Trainer& trainer, const StateDict& state) override;

  /// The next batch of training, with its place in its group.
  GroupedBatch next_batch();

  /// Gives the data of an evaluation what the training data, or that of the loaded checkpoint,
  /// learnt. \throws DataError  when it does not go with it
  void prepare(const Trainer& trainer, const DataLoader& loader) const;

 private:
  void save_own_state(StateDict& position) const;
  void load_own_state(const StateDict& position);

  std::optional<DataLoader> loader_;
  StateDict fitted_;  // what the training data learnt; empty when nothing
  std::unique_ptr<GroupedStream> stream_;
  LoaderPosition start_;          // where the fit begins to read
  bool has_no_position_ = false;  // the checkpoint holds none
  std::optional<Stopwatch> since_first_batch_;
  double waited_ = 0.0;       // seconds for batches behind the first
  bool has_advised_ = false;  // of a loader that is slow
  bool has_counts_ = false;   // the data set has some to log
};

}  // namespace rondo
