#include "distributed/connect.h"

#include <fmt/format.h>

#include "core/error.h"
#include "distributed/internal/key_store.h"
#include "distributed/internal/meeting.h"
#include "distributed/single_process.h"

namespace rondo {

namespace {

/// The store of this process's run, which is one, as its environment is, and stays: a rank that
/// comes to the next phase of a run early would otherwise find the one of the phase before.
const KeyStore& store_of_process(const LaunchEnvironment& environment,
                                 std::chrono::milliseconds timeout) {
  static const auto* const store = new KeyStore(environment, timeout);
  return *store;
}

/// All ranks connect in the same order.
KeyStore next_store(const LaunchEnvironment& environment, const DistributedOptions& options) {
  static int connections = 0;
  return store_of_process(environment, timeout_of(options))
      .below(fmt::format("connection_{}/", ++connections));
}

}  // namespace

std::string problem_of_ranks(int64_t ranks, std::optional<int64_t> virtual_ranks) {
  const bool is_power_of_two = (ranks & (ranks - 1)) == 0;
  if (is_power_of_two && virtual_ranks.value_or(ranks) % ranks == 0) {
    return "";
  }
  const int64_t most = virtual_ranks.value_or(2 * ranks);
  std::string fitting = "1";
  for (int64_t fits = 2; fits <= most; fits *= 2) {
    fitting += fmt::format("{}{}", 2 * fits > most ? " or " : ", ", fits);
  }
  return fmt::format(
      "{} ranks cannot share {} evenly: start {} of them",
      ranks,
      virtual_ranks ? fmt::format("the {} virtual ranks of the run", *virtual_ranks) : "an update",
      fitting);
}

std::shared_ptr<Communicator> connect_ranks(const LaunchEnvironment& environment,
                                            const DistributedOptions& options,
                                            const TextLog& log) {
  if (const std::string problem = problem_of_ranks(environment.world_size, options.virtual_ranks);
      !problem.empty()) {
    throw UsageError(problem);
  }
  if (environment.world_size == 1) {
    return std::make_shared<SingleProcess>();
  }
  const KeyStore store = next_store(environment, options);
  return meet_ranks(environment, options, store, log);
}

std::shared_ptr<Communicator> connect_ranks(const std::optional<DistributedOptions>& options,
                                            const TextLog& log) {
  const auto environment = read_launch_environment();
  if (!environment || environment->world_size == 1) {
    return std::make_shared<SingleProcess>();
  }
  if (!options && !environment->is_rondo_launch()) {
    throw UsageError(fmt::format(
        "{} started this process as rank {} of {}, but the run does not say that it takes several: "
        "add the table [trainer.init.distributed] to its file (TrainerOptions::distributed in "
        "code), or start it with `rondo launch -n {}`",
        environment->launcher,
        environment->rank,
        environment->world_size,
        environment->world_size));
  }
  return connect_ranks(*environment, options.value_or(DistributedOptions{}), log);
}

}  // namespace rondo
