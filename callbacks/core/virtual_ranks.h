#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "callbacks/core/flat_rooms.h"
#include "callbacks/core/partial_sums.h"
#include "core/named_tensor.h"
#include "data/grouped_stream.h"
#include "distributed/communicator.h"

namespace rondo {

class Optimizer;
class Trainer;

/// Tensors of which each virtual rank has its own: all start from the same values, and at the end
/// of an update the changes of all are added.
class RankedState {
 public:
  /// In the step, at the first batch of a virtual rank.  \capture safe
  void begin(std::vector<at::Tensor> tensors);

  /// In the step, at the end of a virtual rank: its changes, added to those of the ones before it.
  /// \param share    by which changes of floating-point tensors are multiplied, 0-dim
  /// \param is_real  likewise of other tensors
  /// \capture safe
  std::vector<at::Tensor> changes(const at::Tensor& share,
                                  const at::Tensor& is_real,
                                  const RankEnd& end);

  /// Sets the tensors to their start and the changes of all, or to their start for the next virtual
  /// rank.  \capture safe
  void take(const std::vector<at::Tensor>& changes, const RankEnd& end);

  void append_to(NamedTensors& all, const std::string& name) const;

 private:
  std::vector<at::Tensor> tensors_;
  std::vector<at::Tensor> starts_;
  PartialSums sums_;
};

/// The virtual ranks of a run. They fix its arithmetic, processes only share them out: each batch
/// is cut into one part for each, a virtual rank accumulates its parts with random numbers of its
/// own, and what they have is added as a fixed tree, in a process and then over the processes. So
/// the bits of a run do not depend on the number of its processes. Belongs to slot
/// `reproducibility`.
/// Source: docs/virtual_ranks.md
class VirtualRanks {
 public:
  /// \param count  a power of two that the number of processes divides
  VirtualRanks(Communicator& communicator, int64_t count);

  int64_t count() const { return count_; }

  /// \throws UsageError  when it is no power of two, or the processes cannot share it
  void set_count(int64_t count);

  /// Those of this process.
  RankRange range() const;

  /// Whether there are other processes.
  bool has_peers() const { return communicator_.world_size() > 1; }

  /// That of the current batch.
  int64_t current() const { return current_; }

  /// Whether the current batch is its last one in the group.
  bool ends_rank() const { return end_.has_value(); }

  /// What tells its step from that of other batches, as a part of a step's name: how many sums are
  /// added at its end. "" where it does not end a virtual rank.
  std::string step_name() const;

  /// \name Around a batch, on the host
  /// @{

  /// Before the step: what the batch is, and what is asked of this process.
  void begin_batch(Trainer& trainer, const GroupedBatch& batch);

  /// After the step: the seconds by which the run's time moves. Where there are other processes,
  /// those that the first one measured in the update before. Where another process was asked to
  /// stop, so is this one.
  /// \param own  that this process measured
  double agreed_seconds(Trainer& trainer, double own);

  /// Whether a process was asked to stop, to end early, or to save, when the newest update began.
  bool is_stop_agreed() const { return has_agreed(AskedStop); }

  bool is_exit_agreed() const { return has_agreed(AskedExit); }

  bool is_save_agreed() const { return has_agreed(AskedSave); }

  /// Before another fit.
  void forget_agreed() { agreed_.zero_(); }

  /// @}

  /// \name In the step
  /// @{

  /// At its beginning.  \capture safe
  void begin_step(Trainer& trainer);

  /// \throws UsageError  when the gradients of the update were added already: a backward behind
  ///                     that would see other weights in other virtual ranks
  void require_no_update() const;

  /// At the last batch of a group, before the update of an optimizer: its gradients, added over all
  /// virtual ranks. The first call also adds what the buffers of the model changed by.
  /// \capture safe
  void sum_gradients(Trainer& trainer, Optimizer& optimizer);

  /// At the end of a virtual rank: keeps its gradients for the sum.  \capture safe
  void end_step(Trainer& trainer);

  /// At the end of a virtual rank: adds losses over the virtual ranks, in place.  \capture safe
  void sum_losses(Trainer& trainer, std::vector<at::Tensor> losses);

  /// The state of metrics of training, likewise.  \capture safe
  void begin_metrics(std::vector<at::Tensor> state) { metrics_.begin(std::move(state)); }

  void sum_metrics(Trainer& trainer);

  /// @}

  /// The tensors that a step reads or writes.
  NamedTensors captured_state() const;

 private:
  enum Asked { AskedStop, AskedExit, AskedSave, AskedSeconds, AskedCount };

  bool has_agreed(Asked what) const;
  void sum_state(Trainer& trainer, RankedState& state, const at::Tensor& share);
  void sum_over_processes(Trainer& trainer, std::vector<at::Tensor> values);

  Communicator& communicator_;
  int64_t count_;
  int64_t current_ = 0;
  std::optional<RankEnd> end_;
  bool is_last_of_group_ = true;
  bool has_summed_ = false;  // in the running body
  at::Tensor share_;         // of the current virtual rank in the group: float64, 0-dim
  at::Tensor is_real_;       // 1; 0 where it has no samples: likewise
  at::Tensor asked_;         // by this process: float64, [AskedCount]
  at::Tensor agreed_;        // the sums of all
  double seconds_ = 0.0;     // that this process measured since it last told
  std::map<std::string, PartialSums> gradients_;  // by optimizer
  PartialSums losses_;
  RankedState buffers_;
  RankedState metrics_;
  FlatRooms rooms_;  // for what goes to other processes
};

/// Those of the run; null: none.
VirtualRanks* ranks_of(const Trainer& trainer);

}  // namespace rondo
