#pragma once

#include <memory>

#include "core/log.h"
#include "distributed/communicator.h"
#include "trainer/trainer_options.h"

namespace rondo {

/// Connects a Trainer with those of the other ranks, which must have the same version and
/// configuration. In ranks that do not write, no logger is told and nobody is notified.
/// \throws UsageError, PeerLostError  as `connect_ranks`
/// \throws RankMismatchError          naming what differs
std::shared_ptr<Communicator> join_ranks(TrainerOptions& options, const TextLog& log);

}  // namespace rondo
