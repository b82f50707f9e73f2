#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "backends/step.h"
#include "data/data_loader.h"

namespace rondo {

/// What a step sees of training: a batch, or a micro-batch of one, with its place in its group.
struct GroupedBatch {
  Batch batch;
  GroupPosition phase;
  bool ends_epoch = false;
  std::optional<double> share;  ///< of the group's samples (or tokens); nothing where all are alike
};

/// How batches make groups.
struct GroupOptions {
  int64_t batches = 1;                      ///< of the loader, in one update, >= 1
  std::optional<int64_t> micro_batch = {};  ///< samples of the pieces that they are cut into, >= 1
  bool on_tokens = false;                   ///< whether shares count tokens, not samples
  std::optional<int64_t> batches_of_pass = {};  ///< after which a pass ends, >= 1
};

/// The endless batches of training, epoch after epoch, in groups that never cross an epoch: the
/// last group of an epoch may be smaller. A group is read whole before its first batch is given
/// out, so its size is known from the beginning. Of a data set that keeps its own state nothing
/// more is read than what is given out.
class GroupedStream {
 public:
  /// Begins with the next epoch where what is left of the position's epoch makes no batch.
  /// \param run_seed  seed of the shuffle when the loader has none
  GroupedStream(const DataLoader& loader,
                const GroupOptions& options,
                uint64_t run_seed,
                const LoaderPosition& position);

  /// The epoch of the batch that `next` returns first.
  int64_t first_epoch() const { return first_epoch_; }

  /// \throws DataError  when a whole epoch yields no batch, or a batch cannot be cut
  GroupedBatch next();

  /// True where the next batch to be read is the first of its pass.
  bool is_between_passes() const { return is_at_end_; }

 private:
  std::optional<Batch> read();
  void begin_epoch(int64_t sample);
  void read_group();
  void read_first();
  bool is_last() const;
  void add(Batch batch);
  void set_shares();

  DataLoader loader_;
  GroupOptions options_;
  uint64_t run_seed_;
  int64_t epoch_;
  std::unique_ptr<BatchStream> stream_;
  int64_t read_ = 0;            // batches of the epoch that were read; counted where a pass is cut
  bool looks_ahead_;            // not where a data set gives what comes in from outside
  bool is_at_end_ = false;      // of a pass
  std::optional<Batch> ahead_;  // the first batch of the next group of this epoch
  int64_t first_epoch_ = 0;
  std::vector<GroupedBatch> group_;
  size_t given_ = 0;  // batches of the group that were given out
};

}  // namespace rondo
