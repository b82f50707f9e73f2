#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace rondo {

/// A world that an agent acts in, for reinforcement learning. Used by one thread.
class Environment {
 public:
  /// What it gives and takes.
  struct Description {
    std::vector<int64_t> observation = {};  ///< shape, float32
    std::vector<int64_t> action = {};       ///< shape, float32; of numbered actions []
    int64_t numbered_actions = 0;           ///< actions are int64 in [0, this); 0: they are numbers
    double least = 0.0;                     ///< of a number of an action
    double most = 0.0;
  };

  struct Step {
    at::Tensor observation;
    double reward = 0.0;
    bool is_terminal = false;  ///< the world ended: nothing comes behind this
    bool is_cut = false;       ///< the episode ends here, though the world would go on
  };

  Environment() = default;
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  virtual ~Environment() = default;

  virtual Description description() const = 0;

  /// Begins an episode that follows from `seed` and the actions alone.
  /// \return the first observation
  virtual at::Tensor reset(uint64_t seed) = 0;

  /// Acts once. After a step that ends the episode comes `reset`.
  virtual Step step(const at::Tensor& action) = 0;
};

/// Several environments of one kind, side by side. Their episodes follow from the seed: episode k
/// of environment i is the same whatever the others do.
class EnvironmentBatch {
 public:
  struct Options {
    std::function<std::unique_ptr<Environment>()> make = {};  ///< must be given
    int64_t count = 1;                                        ///< environments, >= 1
    uint64_t seed = 0;
  };

  struct Steps {
    at::Tensor observation;       ///< float32 [count, ...]: of a new episode where one ended
    at::Tensor next_observation;  ///< the same, but the last one of an episode that ended
    at::Tensor reward;            ///< float32 [count]
    at::Tensor is_terminal;       ///< bool [count]
    at::Tensor is_cut;            ///< bool [count]
  };

  /// \throws UsageError  when an option is missing or out of its range
  explicit EnvironmentBatch(const Options& options);

  int64_t count() const { return static_cast<int64_t>(all_.size()); }

  Environment::Description description() const { return all_.front()->description(); }

  /// Begins a new episode in each. \return float32 [count, ...]
  at::Tensor reset();

  /// \param actions  [count, ...]
  /// \throws ShapeError  when they are not one for each environment
  Steps step(const at::Tensor& actions);

 private:
  at::Tensor begin_episode(size_t environment);

  uint64_t seed_;
  std::vector<std::unique_ptr<Environment>> all_;
  std::vector<uint64_t> episodes_;  // that each has begun
};

}  // namespace rondo
