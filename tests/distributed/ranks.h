#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/log.h"
#include "distributed/communicator.h"
#include "distributed/distributed_options.h"
#include "distributed/launch_environment.h"

namespace rondo::test {

/// What each rank of a run ended with: "" or what it threw.
using Ends = std::vector<std::string>;

/// Ranks that are threads of this process.
Ends run_ranks(int world_size,
               const DistributedOptions& options,
               const std::function<void(Communicator&)>& work,
               const TextLog& log = TextLog(LogLevel::Error));

}  // namespace rondo::test
