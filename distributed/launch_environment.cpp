#include "distributed/launch_environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "core/error.h"

namespace rondo {

namespace {

constexpr const char* kLauncherVariable = "RONDO_LAUNCHER";
constexpr const char* kFirstVariable = "RONDO_FIRST_WORLD_SIZE";
constexpr int kLeastPort = 20000;  // below the ports that Linux gives to connections
constexpr int kPorts = 12000;

/// Where one launcher writes what.
struct Names {
  const char* launcher;
  const char* rank;
  const char* world_size;
  const char* local_rank;
  const char* local_world_size;
  const char* node_rank;
  const char* job;  ///< what tells two runs of a host apart
};

constexpr Names kTorchrun = {"the environment",
                             "RANK",
                             "WORLD_SIZE",
                             "LOCAL_RANK",
                             "LOCAL_WORLD_SIZE",
                             "NODE_RANK",
                             nullptr};
constexpr Names kMpirun = {"mpirun",
                           "OMPI_COMM_WORLD_RANK",
                           "OMPI_COMM_WORLD_SIZE",
                           "OMPI_COMM_WORLD_LOCAL_RANK",
                           "OMPI_COMM_WORLD_LOCAL_SIZE",
                           nullptr,
                           "PMIX_NAMESPACE"};
constexpr Names kSrun = {"srun",
                         "SLURM_PROCID",
                         "SLURM_STEP_NUM_TASKS",
                         "SLURM_LOCALID",
                         nullptr,
                         "SLURM_NODEID",
                         "SLURM_JOB_ID"};

class Reader {
 public:
  explicit Reader(const Variables& variables) : variables_(variables) {}

  const char* text(const char* name) const {
    const char* const value = name == nullptr ? nullptr : variables_(name);
    return value == nullptr || *value == '\0' ? nullptr : value;
  }

  std::optional<int> number(const char* name, int least, int most) const {
    const char* const value = text(name);
    if (value == nullptr) {
      return std::nullopt;
    }
    const std::string_view digits = value;
    int found = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), found);
    if (error != std::errc() || end != digits.data() + digits.size() || found < least ||
        found > most) {
      throw UsageError(
          fmt::format("the environment variable {} is \"{}\": expected an integer "
                      "from {} to {}",
                      name,
                      digits,
                      least,
                      most));
    }
    return found;
  }

 private:
  const Variables& variables_;
};

[[noreturn]] void contradict(const std::string& what) {
  throw UsageError("the environment variables of the ranks contradict each other: " + what);
}

/// The first component of "2(x3),1": what srun says of the ranks of each host.
std::optional<int> ranks_of_first_host(const Reader& read) {
  const char* const text = read.text("SLURM_STEP_TASKS_PER_NODE");
  int found = 0;
  if (text == nullptr) {
    return std::nullopt;
  }
  const std::string_view all = text;
  const auto end = std::from_chars(all.data(), all.data() + all.size(), found).ptr;
  const bool is_for_all = end != all.data() && all.find(',') == std::string_view::npos;
  return is_for_all ? std::optional(found) : std::nullopt;
}

void read_place(const Reader& read, const Names& names, LaunchEnvironment& found) {
  found.local_world_size =
      read.number(names.local_world_size, 1, INT_MAX)
          .value_or(names.launcher == kSrun.launcher ? ranks_of_first_host(read).value_or(1)
                                                     : found.world_size);
  const auto local_rank = read.number(names.local_rank, 0, INT_MAX);
  found.local_rank =
      local_rank.value_or(found.world_size == found.local_world_size ? found.rank : 0);
  found.node_rank = read.number(names.node_rank, 0, INT_MAX).value_or(0);
  if (found.local_world_size > found.world_size) {
    contradict(
        fmt::format("{} ranks on this host, {} in all", found.local_world_size, found.world_size));
  }
  const bool knows_local_size = read.text(names.local_world_size) != nullptr;
  if (local_rank && knows_local_size && *local_rank >= found.local_world_size) {
    contradict(fmt::format("{} is {}, but {} is {}",
                           names.local_rank,
                           *local_rank,
                           names.local_world_size,
                           found.local_world_size));
  }
}

/// Two runs of a host rarely have one port.
int port_of_job(const char* job) {
  unsigned hash = 0;
  for (const char c : std::string_view(job)) {
    hash = hash * 31 + static_cast<unsigned char>(c);
  }
  return kLeastPort + static_cast<int>(hash % kPorts);
}

void read_address(const Reader& read, const Names& names, LaunchEnvironment& found) {
  const bool is_one_host = found.local_world_size == found.world_size;
  if (const char* const address = read.text("MASTER_ADDR")) {
    found.master_addr = address;
  } else if (const char* const nodes = read.text("SLURM_STEP_NODELIST");
             nodes != nullptr && names.launcher == kSrun.launcher) {
    found.master_addr = first_host(nodes);
  } else if (!is_one_host) {
    throw UsageError(fmt::format(
        "{} ranks on several hosts need the environment variable MASTER_ADDR, the host of rank 0",
        found.world_size));
  }
  if (const auto port = read.number("MASTER_PORT", 1, 65535)) {
    found.master_port = *port;
  } else if (const char* const job = read.text(names.job)) {
    found.master_port = port_of_job(job);
  } else {
    throw UsageError(
        "the environment variable MASTER_PORT is missing: any free port of rank 0's host, the same "
        "for all ranks");
  }
}

/// What one launcher says; nothing when it did not start this process.
std::optional<LaunchEnvironment> read_from(const Reader& read, const Names& names) {
  const auto world_size = read.number(names.world_size, 1, 1 << 20);
  const auto rank = read.number(names.rank, 0, 1 << 20);
  if (!world_size && (!rank || names.launcher == kSrun.launcher)) {
    return std::nullopt;  // SLURM_PROCID is also set outside of a step of ranks
  }
  if (!world_size || !rank) {
    contradict(fmt::format("{} is set, but {} is not",
                           rank ? names.rank : names.world_size,
                           rank ? names.world_size : names.rank));
  }
  if (*rank >= *world_size) {
    contradict(
        fmt::format("{} is {}, but {} is {}", names.rank, *rank, names.world_size, *world_size));
  }
  LaunchEnvironment found;
  found.launcher = names.launcher;
  found.rank = *rank;
  found.world_size = *world_size;
  if (*world_size > 1) {
    read_place(read, names, found);
    read_address(read, names, found);
  }
  return found;
}

void require_same(const LaunchEnvironment& first, const LaunchEnvironment& second) {
  if (first.rank != second.rank || first.world_size != second.world_size) {
    contradict(fmt::format("{} says rank {} of {}, {} says rank {} of {}",
                           first.launcher,
                           first.rank,
                           first.world_size,
                           second.launcher,
                           second.rank,
                           second.world_size));
  }
}

}  // namespace

std::optional<LaunchEnvironment> read_launch_environment(const Variables& variables) {
  const Reader read(variables);
  std::optional<LaunchEnvironment> found = read_from(read, kTorchrun);
  if (found && read.text("TORCHELASTIC_RUN_ID") != nullptr) {
    found->launcher = "torchrun";
    const char* const agent = read.text("TORCHELASTIC_USE_AGENT_STORE");
    found->store_is_there = agent != nullptr && std::string_view(agent) == "True";
    found->node_rank = read.number("GROUP_RANK", 0, INT_MAX).value_or(0);
  }
  if (const char* const launcher = read.text(kLauncherVariable); found && launcher != nullptr) {
    found->launcher = launcher;
    found->first_world_size = read.number(kFirstVariable, 1, INT_MAX).value_or(0);
    return found;  // whatever started the launcher
  }
  for (const Names& names : {kMpirun, kSrun}) {
    const auto other = read_from(read, names);
    if (found && other && other->world_size > 1) {
      require_same(*found, *other);
    }
    found = found ? found : other;
  }
  return found;
}

std::optional<LaunchEnvironment> read_launch_environment() {
  return read_launch_environment([](const char* name) { return std::getenv(name); });
}

LaunchEnvironment rank_of_one_host(int rank, int world_size, int port) {
  LaunchEnvironment environment;
  environment.rank = environment.local_rank = rank;
  environment.world_size = environment.local_world_size = world_size;
  environment.first_world_size = world_size;
  environment.master_port = port;
  environment.launcher = LaunchEnvironment::kRondoLaunch;
  return environment;
}

std::vector<std::pair<std::string, std::string>> variables_of(const LaunchEnvironment& rank) {
  return {{"RANK", std::to_string(rank.rank)},
          {"WORLD_SIZE", std::to_string(rank.world_size)},
          {"LOCAL_RANK", std::to_string(rank.local_rank)},
          {"LOCAL_WORLD_SIZE", std::to_string(rank.local_world_size)},
          {"NODE_RANK", std::to_string(rank.node_rank)},
          {"MASTER_ADDR", rank.master_addr},
          {"MASTER_PORT", std::to_string(rank.master_port)},
          {"PYTHONUNBUFFERED", "1"},
          {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"},
          {kLauncherVariable, rank.launcher},
          {kFirstVariable, std::to_string(std::max(rank.first_world_size, rank.world_size))}};
}

std::string first_host(const std::string& nodes) {
  const size_t bracket = nodes.find('[');
  const size_t comma = nodes.find(',');
  if (bracket == std::string::npos || comma < bracket) {
    return nodes.substr(0, comma);
  }
  const size_t end = nodes.find_first_of("-,]", bracket);
  return nodes.substr(0, bracket) + nodes.substr(bracket + 1, end - bracket - 1);
}

}  // namespace rondo
