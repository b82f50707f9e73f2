#include "distributed/internal/meeting.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "distributed/internal/gave_up.h"
#include "distributed/internal/gloo_link.h"
#include "distributed/internal/host.h"
#include "distributed/internal/pairwise_communicator.h"
#include "distributed/internal/shared_memory_communicator.h"

namespace rondo {

std::chrono::milliseconds timeout_of(const DistributedOptions& options) {
  return std::chrono::milliseconds(static_cast<int64_t>(1000.0 * options.timeout.value()));
}

namespace {

/// What every rank tells the others before it is connected.
struct Introduction {
  std::string host;
  std::string network;
  std::string address;
};

/// One rank among those that are about to connect.
class Meeting {
 public:
  Meeting(const LaunchEnvironment& environment,
          const DistributedOptions& options,
          const KeyStore& store,
          const TextLog& log)
      : environment_(environment),
        options_(options),
        timeout_(timeout_of(options)),
        store_(store),
        log_(log) {}

  std::shared_ptr<Communicator> connect() {
    introduce();
    const bool is_one_host = are_on_one_host();
    if (options_.transport == "shm" && !is_one_host) {
      throw UsageError(
          "distributed.transport is \"shm\", but the ranks are on several hosts, or in containers "
          "that do not see each other's processes: use \"auto\" or \"gloo\"");
    }
    if (options_.transport != "gloo" && is_one_host) {
      if (auto shared = share_memory()) {
        return shared;
      }
    }
    const int rank = environment_.rank;
    const GlooPlace place{rank, environment_.world_size, own_address(), timeout_};
    const auto give_up = [rank, store = store_](const std::string& cause) {
      tell_gave_up(store, rank, cause);
    };
    return std::make_shared<PairwiseCommunicator>(
        rank, environment_.world_size, "gloo", make_gloo_link(place, store_), give_up);
  }

 private:
  /// Writes what this rank has to say and reads what all have. Rank 0, whose end would be that of
  /// the store, returns when all have read it. \throws PeerLostError
  std::vector<std::string> exchange(const std::string& topic, const std::string& own) {
    store_.set(fmt::format("{}/{}", topic, environment_.rank), own);
    std::vector<std::string> said = read_all(topic);
    store_.set(fmt::format("{}_read/{}", topic, environment_.rank), "");
    if (environment_.rank == 0) {
      read_all(topic + "_read");
    }
    return said;
  }

  std::vector<std::string> read_all(const std::string& topic) {
    const auto deadline = std::chrono::steady_clock::now() + timeout_;
    std::vector<std::string> said;
    std::vector<int> missing;
    for (int rank = 0; rank < environment_.world_size; ++rank) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          deadline - std::chrono::steady_clock::now());
      const auto text = store_.get(fmt::format("{}/{}", topic, rank),
                                   std::max(left, std::chrono::milliseconds(0)));
      said.push_back(text.value_or(""));
      if (!text) {
        missing.push_back(rank);
      }
    }
    if (!missing.empty()) {
      throw PeerLostError(fmt::format(
          "rank {} of {} waited {} s for rank {}, which did not start or has ended: see its log",
          environment_.rank,
          environment_.world_size,
          timeout_.count() / 1000,
          fmt::join(missing, ", ")));
    }
    return said;
  }

  void introduce() {
    const std::string address = address_towards(environment_.master_addr, environment_.master_port);
    const std::string own = host_of_process() + "\n" + network_of_process() + "\n" + address;
    for (const std::string& text : exchange("rank", own)) {
      std::istringstream lines(text);
      Introduction& rank = ranks_.emplace_back();
      std::getline(lines, rank.host);
      std::getline(lines, rank.network);
      std::getline(lines, rank.address);
    }
  }

  bool are_on_one_host() const {
    return std::all_of(ranks_.begin(), ranks_.end(), [&](const Introduction& other) {
      return other.host == ranks_.front().host;
    });
  }

  /// Of rank 0, whose way to itself shows only loopback, it is the way to another host.
  std::string own_address() const {
    const Introduction& own = ranks_[static_cast<size_t>(environment_.rank)];
    bool is_one_network = true;
    for (const Introduction& other : ranks_) {
      if (other.network == own.network) {
        continue;
      }
      is_one_network = false;
      if (own.network == ranks_.front().network) {
        return address_towards(other.address, environment_.master_port);
      }
    }
    return is_one_network ? "127.0.0.1" : own.address;
  }

  std::shared_ptr<Communicator> share_memory() {
    constexpr size_t kLine = 64;
    const size_t block = (static_cast<size_t>(options_.bucket_bytes) + kLine - 1) / kLine * kLine;
    const size_t bytes = SharedMemoryCommunicator::bytes_for(environment_.world_size, block);
    std::optional<SharedMemory> memory;
    const std::string fault = open_memory(bytes, memory);
    for (const std::string& of_rank : exchange("shm_fault", fault)) {
      if (!of_rank.empty()) {
        refuse_memory(of_rank);
        return nullptr;
      }
    }
    const SharedPlace place{environment_.rank, environment_.world_size, block, timeout_};
    return std::make_shared<SharedMemoryCommunicator>(place, std::move(*memory));
  }

  /// \return why there is none; "" when there is
  std::string open_memory(size_t bytes, std::optional<SharedMemory>& memory) {
    try {
      if (environment_.rank == 0) {
        memory.emplace(SharedMemory::make(bytes));
        store_.set("shm", memory->path());
      } else if (const auto path = store_.get("shm", timeout_)) {
        memory.emplace(SharedMemory::open(*path, bytes));
      }
      return "";
    } catch (const IoError& error) {
      if (environment_.rank == 0) {
        store_.set("shm", "/dev/null");  // nobody waits for it
      }
      return error.what();
    }
  }

  void refuse_memory(const std::string& fault) {
    const std::string what = fmt::format("the ranks cannot share memory: {}", fault);
    if (options_.transport == "shm") {
      throw IoError(what, 0);
    }
    if (environment_.rank == 0) {
      log_.warning(what + "; gloo carries their sums, which takes longer");
    }
  }

  const LaunchEnvironment& environment_;
  const DistributedOptions& options_;
  std::chrono::milliseconds timeout_;
  const KeyStore& store_;
  const TextLog& log_;
  std::vector<Introduction> ranks_;
};

}  // namespace

std::shared_ptr<Communicator> meet_ranks(const LaunchEnvironment& environment,
                                         const DistributedOptions& options,
                                         const KeyStore& store,
                                         const TextLog& log) {
  return Meeting(environment, options, store, log).connect();
}

}  // namespace rondo
