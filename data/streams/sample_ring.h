#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/state_dict.h"
#include "core/tensor_map.h"
#include "data/dataset.h"
#include "data/streams/priority_tree.h"

namespace rondo {

/// The newest samples that a program pushes while it runs, such as a simulation or a robot, for a
/// trainer that draws from them. Any threads push, one thread draws. A push copies its tensors
/// before it takes the lock, and holds it for one more copy of one sample; it never waits for the
/// trainer, unless `when_full` is "block".
class SampleRing {
 public:
  struct Options {
    int64_t capacity = 0;     ///< samples, >= 1; must be given
    int64_t min_samples = 1;  ///< that must be there before the first is drawn, in [1, capacity]
    /// "overwrite" replaces the oldest sample, "drop" leaves the new one out, "block" waits until
    /// one is drawn; that needs draw = "in_order".
    std::string when_full = "overwrite";
    /// "uniform" and "priority" draw again and again; "in_order" gives each sample once.
    std::string draw = "uniform";
    double timeout = 60.0;      ///< seconds that a draw waits for samples, > 0
    uint64_t seed = 0;          ///< of what is drawn
    double priority_power = 1;  ///< a sample's chance goes with its priority to this power, >= 0
    /// Samples of an epoch; without it the first epoch never ends.
    std::optional<int64_t> epoch_samples = {};
    /// Bytes of samples that a checkpoint may hold; more are an error when it is saved.
    int64_t max_state_bytes = int64_t{1} << 30;
  };

  enum class Push {
    Stored,
    Overwrote,  ///< stored, and the oldest one was given up
    Dropped,
    Mismatch,  ///< another name, shape or dtype than the samples before it; nothing changed
    Closed,    ///< nobody draws any more
  };

  struct Counts {
    int64_t pushed = 0;  ///< those that were dropped included
    int64_t dropped = 0;
    int64_t overwritten = 0;
    int64_t drawn = 0;
    int64_t present = 0;
  };

  /// A sample with its number in the order of pushes, from 0, and the chance it was drawn with.
  struct Drawn {
    Sample sample;
    int64_t number = 0;
    double chance = 1.0;
  };

  /// \throws UsageError  when an option is out of its range
  explicit SampleRing(const Options& options);

  const Options& options() const { return options_; }

  /// Copies a sample into the ring. Nothing of the tensors is kept. Any thread.
  /// \param priority  > 0; absent: that of the sample with the most, 1 for the first
  /// \param why       gets what is wrong with a mismatch
  Push push(const TensorMap& sample,
            std::optional<double> priority = {},
            std::string* why = nullptr);

  /// Waits for samples, then draws one; nothing once the ring was closed and, in order, is empty.
  /// \throws DataError  after `timeout` seconds, with the counts
  std::optional<Drawn> draw();

  /// Draws several now. \throws DataError  when fewer than `min_samples` are there
  std::vector<Drawn> draw_now(int64_t count);

  /// Changes the priority of a sample that may have been overwritten meanwhile.
  /// \param priority  > 0
  void set_priority(int64_t number, double priority);

  /// Ends it: pushes are refused, and a waiting push or draw returns. Any thread.
  void close();

  Counts counts() const;

  /// Samples, their order, priorities and counts.
  /// \throws DataError  when they have more than `max_state_bytes`
  StateDict save_state() const;

  /// \throws CheckpointError  when it does not go with the options
  void load_state(const StateDict& state);

 private:
  size_t slot_of(int64_t number) const { return static_cast<size_t>(number % options_.capacity); }

  int64_t present() const { return end_ - first_; }

  std::string mismatch(const TensorMap& sample) const;
  void allocate(const TensorMap& sample);
  Drawn draw_one();
  bool can_draw() const;
  std::string counts_text() const;

  const Options options_;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable room_;
  std::condition_variable filled_;
  TensorMap slots_;  // each [capacity, ...]; none before the first push
  PriorityTree priorities_;
  int64_t first_ = 0;  // number of the oldest sample
  int64_t end_ = 0;    // behind that of the newest
  bool has_begun_ = false;
  bool is_closed_ = false;
  Counts counts_;
};

/// The samples of a ring as data that trains. In priority order a sample also has "ring_number" and
/// "ring_chance", with which a program can set its priority and weigh its loss.
class RingDataset final : public IterableDataset {
 public:
  using Options = SampleRing::Options;

  explicit RingDataset(const Options& options)
      : RingDataset(std::make_shared<SampleRing>(options)) {}

  explicit RingDataset(std::shared_ptr<SampleRing> ring) : ring_(std::move(ring)) {}

  void start(int64_t) override { left_ = ring_->options().epoch_samples; }

  std::optional<Sample> next() override;

  std::optional<int64_t> size() const override { return ring_->options().epoch_samples; }

  std::vector<std::pair<std::string, double>> counts() const override;

  bool has_state() const override { return true; }

  StateDict save_state() const override;
  void load_state(const StateDict& state) override;

  /// What a program pushes into. Shared: pushes may outlive the data set.
  const std::shared_ptr<SampleRing>& ring() const { return ring_; }

 private:
  std::shared_ptr<SampleRing> ring_;
  std::optional<int64_t> left_;  // samples of this epoch
};

/// Describes a RingDataset of this ring for a DataLoader.
Factory<DataSource> from_ring(std::shared_ptr<SampleRing> ring);

}  // namespace rondo
