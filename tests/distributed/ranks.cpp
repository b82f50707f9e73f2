#include "ranks.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <optional>
#include <stdexcept>
#include <thread>

#include "core/file_descriptor.h"
#include "distributed/internal/key_store.h"
#include "distributed/internal/meeting.h"

namespace rondo::test {

LaunchEnvironment rank_of(int rank, int world_size, int port) {
  LaunchEnvironment environment;
  environment.rank = environment.local_rank = rank;
  environment.world_size = environment.local_world_size = world_size;
  environment.master_port = port;
  environment.launcher = LaunchEnvironment::kRondoLaunch;
  return environment;
}

int free_port() {
  const detail::FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(socket.get(), any, size) != 0 || ::getsockname(socket.get(), any, &size) != 0) {
    throw std::runtime_error("no port is free");
  }
  return ntohs(address.sin_port);
}

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
      const LaunchEnvironment environment = rank_of(rank, world_size, port);
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
