#pragma once

#include <filesystem>

namespace rondo {

/// Cores that this process may use at the same time, >= 1: what its affinity allows, and no more
/// than its control groups' CPU quota pays for.
int available_cores();

/// Cores that the CPU quota of this process's control group pays for, or that of one of the group's
/// parents where it is smaller (cgroup versions 1 and 2, mounted at /sys/fs/cgroup); infinite
/// without a quota. May be less than 1.
/// \param root  the directory that holds `proc` and `sys`
double cores_of_quota(const std::filesystem::path& root = "/");

}  // namespace rondo
