#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "core/tensor_map.h"
#include "data/streams/environment.h"
#include "data/streams/sample_ring.h"

namespace rondo {

/// The newest transitions of environments, with rewards of several steps, to be drawn again and
/// again. Its ring also trains by a Trainer: `DataLoader(from_ring(buffer.ring()))`.
/// Source: Lin 1992 for replay; Sutton 1988 for several steps; Schaul et al. 2016,
/// arXiv:1511.05952, for priorities.
class ReplayBuffer {
 public:
  struct Options {
    int64_t capacity = 100'000;  ///< transitions, >= 1
    int64_t min_samples = 1;     ///< that must be there before the first is drawn
    int64_t steps = 1;           ///< whose rewards a transition sums up, >= 1
    double discount = 0.99;      ///< of a reward one step later, in [0, 1]
    bool has_priorities = false;
    double priority_power = 0.6;   ///< "alpha" of the source, >= 0
    double weight_power = 0.4;     ///< "beta": how much weights correct the chances, in [0, 1]
    double least_priority = 1e-6;  ///< added to the size of an error, > 0
    uint64_t seed = 0;             ///< of what is drawn
  };

  /// Transitions that were drawn. "observation", "action", "next_observation"; "reward", float32
  /// [B], the discounted sum; "discount", float32 [B], of the value of the next observation, 0 when
  /// the world ended; "weight", float32 [B], at most 1: of its loss; "number", int64 [B].
  using Drawn = Batch;

  explicit ReplayBuffer(const Options& options);

  /// Adds a step of every environment.
  /// \param observations  [count, ...]: what was seen before
  /// \param actions       [count, ...]
  void add(const at::Tensor& observations,
           const at::Tensor& actions,
           const EnvironmentBatch::Steps& steps);

  /// \throws DataError  when fewer than `min_samples` are there
  Drawn draw(int64_t count);

  /// Gives drawn transitions the priority |error| + least_priority.
  /// \param numbers  int64 [B]: "number" of what was drawn
  /// \param errors   [B]
  void set_errors(const at::Tensor& numbers, const at::Tensor& errors);

  const std::shared_ptr<SampleRing>& ring() const { return ring_; }

 private:
  struct Waiting {
    at::Tensor observation;
    at::Tensor action;
    double reward = 0.0;
    double discount = 1.0;  // of what comes next
    int64_t steps = 0;
  };

  void push(const Waiting& waiting, const at::Tensor& next, bool is_terminal);

  Options options_;
  std::shared_ptr<SampleRing> ring_;          // shared with the data set that a Trainer draws from
  std::vector<std::deque<Waiting>> waiting_;  // of each environment, the oldest first
};

}  // namespace rondo
