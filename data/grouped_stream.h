#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "backends/step.h"
#include "core/timestamp.h"
#include "data/data_loader.h"

namespace rondo {

/// What a step sees of training: a batch, or a piece of one, with its place in its group.
struct GroupedBatch {
  Batch batch;
  GroupPosition position;
  bool ends_epoch = false;
  std::optional<double> share;  ///< of the group's samples (or tokens); nothing where all are alike
  int64_t rank = 0;             ///< the virtual rank that it belongs to
  double share_of_rank = 1.0;   ///< the same as `share`, of all batches of that virtual rank
  /// Not 0: it is the last of a virtual rank, whose sums are then added to this number less one of
  /// sums of earlier ones. Always 0 without virtual ranks.
  int64_t ends_rank = 0;
  /// What it adds to the run's time, but for seconds. The last of a group also adds what other
  /// processes have of it.
  Timestamp::Advance counts;
  int64_t batches_elsewhere = 0;  ///< of the group, in other processes: known to its last batch
};

/// Elements of "tokens", or else of "input_ids"; 0 without such a tensor.
int64_t tokens_in(const Batch& batch);

/// How batches make groups.
struct GroupOptions {
  int64_t batches = 1;                      ///< of the loader, in one update, >= 1
  std::optional<int64_t> micro_batch = {};  ///< samples of the pieces that they are cut into, >= 1
  bool on_tokens = false;                   ///< whether shares count tokens, not samples
  std::optional<int64_t> batches_of_pass = {};  ///< after which a pass ends, >= 1
  RankRange ranks = {};
  bool cuts_again = false;  ///< keeps the batches of a group for `GroupedStream::cut_again`
};

/// The endless batches of training, epoch after epoch, in groups that never cross an epoch: the
/// last group of an epoch may be smaller. A group is read whole before its first batch is given
/// out, so its size is known from the beginning. Of a data set that keeps its own state nothing
/// more is read than what is given out.
///
/// Virtual ranks: each batch of the loader is cut into as many parts as there are, of sizes that
/// differ by one at most; the longer ones come first. A group is, one virtual rank after the other,
/// what it has of each of the loader's batches. A virtual rank without a sample in the group gets
/// the first piece of the first one, with a share of zero: it adds zero. A process reads no samples
/// of other ones, unless what it does with its own depends on them.
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

  /// Cuts the batches of the group that was given out last into smaller pieces, of which `next`
  /// returns the first: for a group that is trained again. Needs GroupOptions::cuts_again.
  /// \param samples  of a piece, and of those of later groups, >= 1
  void cut_again(int64_t samples);

  /// True where the next batch to be read is the first of its pass.
  bool is_between_passes() const { return is_at_end_; }

 private:
  /// A batch of the loader, of which an indexable data set gives a process its own samples only.
  struct Read {
    Batch batch;
    int64_t begin;  ///< of the samples in `batch`
    int64_t end;
    int64_t samples;  ///< of the loader's batch

    int64_t tokens() const;
  };

  /// Samples of a batch of the loader that a step sees at once.
  struct Cut {
    size_t batch;
    int64_t begin;
    int64_t samples;
    int64_t rank;
    int64_t weight;  // in its group
    bool stands_in;  // for the samples of a virtual rank that has none
  };

  std::optional<Read> read();
  void require_rows(Read& read) const;
  void begin_epoch(int64_t sample);
  void read_group();
  void read_first();
  bool is_last() const;
  void make_group();
  void take();
  void add(Batch batch);
  void set_shares();
  void take_parts();
  std::vector<Cut> cuts() const;
  Batch batch_of(const Cut& cut) const;
  int64_t weight_of(const Batch& batch) const;
  void count_others(int64_t pieces);

  DataLoader loader_;
  GroupOptions options_;
  uint64_t run_seed_;
  int64_t epoch_;
  RankRange reads_;  // of each batch
  std::unique_ptr<BatchStream> stream_;
  int64_t read_ = 0;           // batches of the epoch that were read; counted where a pass is cut
  bool looks_ahead_;           // not where a data set gives what comes in from outside
  bool is_at_end_ = false;     // of a pass
  std::optional<Read> ahead_;  // the first batch of the next group of this epoch
  int64_t first_epoch_ = 0;
  std::vector<Read> batches_;  // of the loader, while a group is read or can be cut again
  std::vector<GroupedBatch> group_;
  size_t given_ = 0;  // batches of the group that were given out
};

}  // namespace rondo
