#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/log.h"
#include "distributed/communicator.h"
#include "distributed/distributed_options.h"
#include "distributed/launch_environment.h"

namespace rondo {

/// Connects this process with the other ranks of its run, when its environment says that there are
/// any. Collective: returns when all have come. A second call of a process makes other connections.
/// \param options  absent: the run does not say that it takes ranks; `rondo launch` says it then
/// \return the ranks, or a SingleProcess
/// \throws UsageError     when the environment contradicts itself or `options`
/// \throws PeerLostError  naming the ranks that do not come within `options.timeout`
std::shared_ptr<Communicator> connect_ranks(const std::optional<DistributedOptions>& options,
                                            const TextLog& log);

/// The same for the environment that is given.
std::shared_ptr<Communicator> connect_ranks(const LaunchEnvironment& environment,
                                            const DistributedOptions& options,
                                            const TextLog& log);

/// Why so many ranks cannot share out an update evenly, and how many could; "" when they can.
/// \param virtual_ranks  parts of the update; absent: as many as ranks
std::string problem_of_ranks(int64_t ranks, std::optional<int64_t> virtual_ranks);

}  // namespace rondo
