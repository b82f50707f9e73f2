#pragma once

#include <chrono>
#include <memory>

#include "core/log.h"
#include "distributed/communicator.h"
#include "distributed/distributed_options.h"
#include "distributed/internal/key_store.h"
#include "distributed/launch_environment.h"

namespace rondo {

std::chrono::milliseconds timeout_of(const DistributedOptions& options);

/// Connects the ranks that meet in a store, by the fastest transport that all of them have.
/// Collective. \throws as `connect_ranks`
std::shared_ptr<Communicator> meet_ranks(const LaunchEnvironment& environment,
                                         const DistributedOptions& options,
                                         const KeyStore& store,
                                         const TextLog& log);

}  // namespace rondo
