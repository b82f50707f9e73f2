#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "callbacks/callback.h"
#include "data/grouped_stream.h"

namespace rondo {

/// Sums gradients over several batches before one update; fills slot `grad_accum`. Divides the loss
/// of each by their number. If they differ in size, such as a short last one, it multiplies the
/// loss by the batch's share of its group instead, which gives the mean over all samples (or
/// tokens). Validation losses are not weighted.
///
/// With kAutoMicroBatch it also finds the size of micro-batches. A fit begins with that of the
/// checkpoint; without one, with the largest that `loop.memory_limit` is predicted to allow, or
/// with whole batches. Each time memory runs out the size is halved, and the group is trained
/// again.
class GradAccumCallback : public CoreCallback {
 public:
  static constexpr const char* kSlot = "grad_accum";

  void setup(Trainer& trainer) override;
  void on_fit_start(Trainer& trainer, const DataLoader&, const Loaders&, Loop&) override;

  /// Writes the share of the batch, which the step reads.
  void on_train_batch_start(Trainer& trainer, Model&, const Batch&, int64_t batch_idx) override;

  /// In the step: weights the loss and its parts.
  void on_after_forward(Trainer& trainer, Model&, Outputs& outputs, const Batch&) override;

  /// The share.
  NamedTensors captured_state() override;

  /// The size of micro-batches that was found.
  StateDict save_state() const override;
  void load_state(const StateDict& state) override;

  /// Chooses the size that a fit begins with, unless one is known.
  /// \throws NotSupportedError  with virtual ranks
  /// \throws UsageError  when no size is predicted to fit
  void choose_size(Trainer& trainer, const DataLoader& train, const Loaders& val);

  /// True when the size changes as memory runs out.
  bool finds_size() const { return groups_.cuts_again; }

  /// Notes that memory ran out. \param samples  of the batch that it ran out with, > 1
  /// \return the size of micro-batches from now on
  int64_t shrink(const Trainer& trainer, int64_t samples);

  /// How batches form an update.
  const GroupOptions& groups() const { return groups_; }

  /// The same, with the virtual ranks of a fit.
  GroupOptions groups_of(const Trainer& trainer) const;

 private:
  void make_share(const Trainer& trainer, bool is_needed);
  at::Tensor weighted(const Trainer& trainer, const at::Tensor& loss) const;

  GroupOptions groups_;
  std::optional<int64_t> memory_limit_;
  at::Tensor share_;  // float64, 0-dim; undefined where groups have one batch
};

}  // namespace rondo
