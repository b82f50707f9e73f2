#pragma once

namespace rondo {

/// Cores that this process may use at the same time, >= 1: what its affinity allows, and no more
/// than its control group's CPU quota pays for (cgroup versions 1 and 2).
int available_cores();

}  // namespace rondo
