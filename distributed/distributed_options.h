#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/time.h"

namespace rondo {

/// How a run is shared out among processes, `[trainer.init.distributed]` in a config file.
struct DistributedOptions {
  /// Parts that every update is cut into, a power of two that the number of ranks divides; absent:
  /// the number of ranks at the run's first start. Another number is another run, with other bits.
  std::optional<int64_t> virtual_ranks = {};
  /// What carries sums between ranks: "shm" (memory shared by the ranks of one host), "gloo" (the
  /// network), or "auto": shm where all ranks can have it. Bits do not depend on it.
  std::string transport = "auto";
  Time timeout = "300sec";         ///< how long a rank waits for the others, at the start and later
  int64_t bucket_bytes = 1 << 20;  ///< size of the pieces in which gradients travel, >= 4096
  /// When ranks sum their gradients: "last", at the last batch of an update.
  std::string sync = "last";
  /// Whether each rank keeps the state of some parameters only, and updates these for all.
  bool shard_optimizer = false;
  /// Whether a loader's batch_size counts the samples of all ranks ("global") or of one rank
  /// ("per_rank").
  std::string batch_size = "global";
};

}  // namespace rondo
