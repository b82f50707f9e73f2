#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "cli/child_process.h"
#include "distributed/launch_environment.h"

namespace rondo {

/// Copies of this process that are the ranks of a run on this host. To be made before this process
/// has threads. \throws IoError
class RankProcesses {
 public:
  using Work = std::function<int(const LaunchEnvironment&)>;

  /// \param work  of each rank; returns its exit code
  RankProcesses(int64_t ranks, const Work& work);

  /// Waits for all. \return the first end that is a failure, or that of rank 0
  ChildEnd wait();

  /// Waits, but no longer than this. \return nothing when some run on
  std::optional<ChildEnd> wait_for(std::chrono::nanoseconds time);

  /// Kills one of those that run, waits until the others have ended, and ends them when they do
  /// not. \return whether one was killed: none is when one has failed by itself
  bool kill_one(std::mt19937_64& random);

 private:
  struct Rank {
    std::unique_ptr<ChildProcess> process;
    std::optional<ChildEnd> end;
  };

  ChildEnd first_failure() const;

  std::vector<Rank> ranks_;
};

}  // namespace rondo
