#pragma once

#include <memory>
#include <optional>

#include "callbacks/callback.h"
#include "core/stopwatch.h"
#include "data/grouped_stream.h"

namespace rondo {

/// Holds the training data during a fit; fills slot `dataloader`. The saved position counts
/// consumed samples, not prefetched ones. If a resumed fit has other batches or another data set
/// and its epoch has no batch left, it starts the next epoch.
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

  /// The next training batch, with its position in its group.
  GroupedBatch next_batch();

  /// The batches of the group in progress are given out again, in pieces of so many samples, as are
  /// those of later groups.
  void cut_again(int64_t samples) { stream_->cut_again(samples); }

  /// Passes what the training data, or that of the loaded checkpoint, learnt to the data of an
  /// evaluation. \throws DataError  when it does not match
  void prepare(const Trainer& trainer, const DataLoader& loader) const;

 private:
  void save_own_state(StateDict& position) const;
  void load_own_state(const StateDict& position);

  std::optional<DataLoader> loader_;
  StateDict fitted_;  // what the training data learnt; empty when nothing
  std::unique_ptr<GroupedStream> stream_;
  LoaderPosition start_;          // where the fit starts to read
  bool has_no_position_ = false;  // the checkpoint has none
  std::optional<Stopwatch> since_first_batch_;
  double waited_ = 0.0;       // seconds for batches after the first
  bool has_advised_ = false;  // about a slow loader
  bool has_counts_ = false;   // the data set has counters to log
};

}  // namespace rondo
