#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace rondo {

/// Which rank of which run this process is, as whoever started it says in the environment.
struct LaunchEnvironment {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;                     ///< among the ranks of this host
  int local_world_size = 1;               ///< ranks of this host
  int node_rank = 0;                      ///< number of this host
  std::string master_addr = "127.0.0.1";  ///< host of rank 0
  int master_port = 0;
  std::string launcher;  ///< "rondo launch", "torchrun", "mpirun", "srun" or "the environment"
  bool store_is_there = false;  ///< the launcher serves the ranks' store; otherwise rank 0 does
  /// Of the launcher's first attempt; a restart may have fewer ranks. 0: as many, or nobody says.
  int first_world_size = 0;

  bool is_rondo_launch() const { return launcher == kRondoLaunch; }

  static constexpr const char* kRondoLaunch = "rondo launch";
};

/// A rank of a run on this host.
/// \param port  at which the ranks meet, and nobody else
LaunchEnvironment rank_of_one_host(int rank, int world_size, int port);

/// The value of an environment variable; null when it is not set.
using Variables = std::function<const char*(const char* name)>;

/// Reads RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, NODE_RANK or GROUP_RANK, MASTER_ADDR and
/// MASTER_PORT (torchrun, rondo launch), OMPI_COMM_WORLD_* (mpirun) and SLURM_* of a step (srun).
/// Addresses that mpirun and srun do not tell are made from what they do.
/// \return nothing when none of them says that there are ranks
/// \throws UsageError  naming the variable, when one is missing, no number, out of range or at
///                     odds with another
std::optional<LaunchEnvironment> read_launch_environment(const Variables& variables);

/// The same of this process.
std::optional<LaunchEnvironment> read_launch_environment();

/// What `rondo launch` sets for a rank: the nine variables of Composer's launcher, one that names
/// the launcher, and the number of ranks of its first attempt.
std::vector<std::pair<std::string, std::string>> variables_of(const LaunchEnvironment& rank);

/// The first host of a SLURM list such as "node[07-09,12],login": "node07".
std::string first_host(const std::string& nodes);

}  // namespace rondo
