#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/state_dict.h"
#include "distributed/communicator.h"

namespace rondo::test {

/// What a process of a run does. \return what the test looks at
using RankWork = std::function<StateDict(const std::shared_ptr<Communicator>&)>;

/// Does the work in `processes` children of this process, which talk through sockets. Each has
/// random numbers of its own, which threads would share.
/// \return what each of them returned, or {"error": what it threw}
std::vector<StateDict> on_processes(int processes, const RankWork& work);

}  // namespace rondo::test
