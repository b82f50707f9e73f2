#include "core/available_cores.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <string>

namespace rondo {

namespace fs = std::filesystem;

namespace {

double cores_of_group(const fs::path& group) {
  double quota = 0.0;
  double period = 0.0;
  const bool is_limited =
      // No quota is "max" in version 2, which is no number, and -1 in version 1.
      std::ifstream(group / "cpu.max") >> quota >> period ||
      (std::ifstream(group / "cpu.cfs_quota_us") >> quota &&
       std::ifstream(group / "cpu.cfs_period_us") >> period);
  return is_limited && quota > 0.0 && period > 0.0 ? quota / period
                                                   : std::numeric_limits<double>::infinity();
}

bool names_cpu(const std::string& controllers) {
  return (',' + controllers + ',').find(",cpu,") != std::string::npos;
}

}  // namespace

double cores_of_quota(const fs::path& root) {
  double cores = std::numeric_limits<double>::infinity();
  std::ifstream groups(root / "proc/self/cgroup");
  std::string number;
  std::string controllers;
  std::string path;
  while (std::getline(groups, number, ':') && std::getline(groups, controllers, ':') &&
         std::getline(groups, path)) {
    if (!controllers.empty() && !names_cpu(controllers)) {
      continue;
    }
    const fs::path mount = root / "sys/fs/cgroup" / (controllers.empty() ? "" : "cpu");
    // A container may see only its own group, mounted as the root: what is missing has no quota.
    fs::path group = fs::path(path).relative_path();
    for (; !group.empty(); group = group.parent_path()) {
      cores = std::min(cores, cores_of_group(mount / group));
    }
    cores = std::min(cores, cores_of_group(mount));
  }
  return cores;
}

int available_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  const bool is_known = ::sched_getaffinity(0, sizeof(allowed), &allowed) == 0;
  const int cores = is_known ? CPU_COUNT(&allowed) : 1;
  return std::max(1, static_cast<int>(std::min<double>(cores, std::floor(cores_of_quota()))));
}

}  // namespace rondo
