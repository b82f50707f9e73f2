#pragma once

#include <memory>
#include <string>
#include <vector>

#include "optim/scheduler.h"

namespace rondo::detail {

/// Makes the parts of a schedule that consists of others. What they drive is the whole's matter: a
/// part says nothing of it, or repeats the key.
/// \param whole  its name, for messages
/// \throws UsageError  without parts, and for one with its own target or that follows a metric
std::vector<std::unique_ptr<Scheduler>> make_parts(const std::string& whole,
                                                   const std::vector<Factory<Scheduler>>& factories,
                                                   const SchedulerTarget& target);

}  // namespace rondo::detail
