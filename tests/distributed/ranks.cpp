#include "ranks.h"

#include <optional>
#include <thread>

#include "distributed/free_port.h"
#include "distributed/internal/key_store.h"
#include "distributed/internal/meeting.h"

namespace rondo::test {

Ends run_ranks(int world_size,
               const DistributedOptions& options,
               const std::function<void(Communicator&)>& work,
               const TextLog& log) {
  const int port = free_port();
  Ends ends(static_cast<size_t>(world_size));
  // They go when all have ended: the store goes with rank 0.
  std::vector<std::optional<KeyStore>> stores(static_cast<size_t>(world_size));
  const auto run = [&](int rank) {
    std::shared_ptr<Communicator> ranks;
    try {
      const LaunchEnvironment environment = rank_of_one_host(rank, world_size, port);
      const KeyStore& store =
          stores[static_cast<size_t>(rank)].emplace(environment, timeout_of(options));
      ranks = meet_ranks(environment, options, store, log);
      work(*ranks);
    } catch (const std::exception& error) {
      ends[static_cast<size_t>(rank)] = error.what();
      if (ranks) {
        ranks->give_up(error.what());
      }
    }
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world_size; ++rank) {
    threads.emplace_back(run, rank);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return ends;
}

}  // namespace rondo::test
