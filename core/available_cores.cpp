#include "core/available_cores.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <string>

namespace rondo {

namespace {

// Of this process's own control group as it sees it; infinite when there is no quota.
double cores_of_quota() {
  std::string quota;
  double period = 0.0;
  if (std::ifstream("/sys/fs/cgroup/cpu.max") >> quota >> period && quota != "max") {
    return std::stod(quota) / period;
  }
  double quota_us = -1.0;
  if (std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") >> quota_us && quota_us > 0.0 &&
      std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_period_us") >> period && period > 0.0) {
    return quota_us / period;
  }
  return std::numeric_limits<double>::infinity();
}

}  // namespace

int available_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  const bool is_known = ::sched_getaffinity(0, sizeof(allowed), &allowed) == 0;
  const int cores = is_known ? CPU_COUNT(&allowed) : 1;
  return std::max(1, static_cast<int>(std::min<double>(cores, std::floor(cores_of_quota()))));
}

}  // namespace rondo
