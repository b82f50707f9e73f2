#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "backends/step.h"
#include "data/data_loader.h"

namespace rondo {

/// A batch of training with its place in its group of accumulated batches.
struct GroupedBatch {
  Batch batch;
  GroupPosition phase;
  bool ends_epoch = false;
};

/// The endless batches of training, epoch after epoch, in groups that never cross an epoch: the
/// last group of an epoch may be smaller. A group is read whole before its first batch is given
/// out, so its size is known from the beginning.
class GroupedStream {
 public:
  /// Begins with the next epoch where what is left of the position's epoch makes no batch.
  /// \param group_size  batches of one update, >= 1
  /// \param run_seed    seed of the shuffle when the loader has none
  GroupedStream(const DataLoader& loader,
                int64_t group_size,
                uint64_t run_seed,
                const LoaderPosition& position);

  /// The epoch of the batch that `next` returns first.
  int64_t first_epoch() const { return first_epoch_; }

  /// \throws DataError  when a whole epoch yields no batch
  GroupedBatch next();

 private:
  void read_group();

  DataLoader loader_;
  int64_t group_size_;
  std::unique_ptr<BatchStream> stream_;
  std::optional<Batch> ahead_;  // the first batch of the next group of this epoch
  int64_t first_epoch_;
  std::vector<GroupedBatch> group_;
  size_t given_ = 0;  // batches of the group that were given out
};

}  // namespace rondo
