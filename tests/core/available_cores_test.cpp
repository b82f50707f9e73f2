#include "core/available_cores.h"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "support/temp_dir.h"

using namespace rondo;
using rondo::test::TempDir;

namespace {

void write(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

}  // namespace

TEST_SUITE_BEGIN("core/available_cores");

TEST_CASE("the quota of the process's own group counts, not that of the root (version 2)") {
  const TempDir root;
  write(root / "proc/self/cgroup", "0::/user.slice/job:1.scope\n");
  CHECK(std::isinf(cores_of_quota(root.path())));
  write(root / "sys/fs/cgroup/user.slice/job:1.scope/cpu.max", "250000 100000\n");
  write(root / "sys/fs/cgroup/other/cpu.max", "10000 100000\n");
  CHECK(cores_of_quota(root.path()) == 2.5);
  write(root / "sys/fs/cgroup/user.slice/job:1.scope/cpu.max", "max 100000\n");
  CHECK(std::isinf(cores_of_quota(root.path())));
}

TEST_CASE("the smallest quota of the group and its parents counts") {
  const TempDir root;
  const std::filesystem::path groups = root / "sys/fs/cgroup";
  write(root / "proc/self/cgroup", "0::/a/b/c\n");
  write(groups / "a/b/c/cpu.max", "400000 100000\n");
  write(groups / "a/b/cpu.max", "max 100000\n");
  write(groups / "a/cpu.max", "150000 50000\n");
  CHECK(cores_of_quota(root.path()) == 3.0);
  write(groups / "cpu.max", "50000 100000\n");
  CHECK(cores_of_quota(root.path()) == 0.5);
}

TEST_CASE("version 1 names the group of its cpu controller") {
  const TempDir root;
  const std::filesystem::path groups = root / "sys/fs/cgroup/cpu";
  write(root / "proc/self/cgroup", "9:cpuset:/set\n4:cpuacct,cpu:/jobs/one\n0::/unified\n");
  write(groups / "set/cpu.cfs_quota_us", "100000\n");
  write(groups / "set/cpu.cfs_period_us", "100000\n");
  write(groups / "jobs/one/cpu.cfs_quota_us", "-1\n");
  write(groups / "jobs/one/cpu.cfs_period_us", "100000\n");
  CHECK(std::isinf(cores_of_quota(root.path())));
  write(groups / "jobs/cpu.cfs_quota_us", "600000\n");
  write(groups / "jobs/cpu.cfs_period_us", "100000\n");
  CHECK(cores_of_quota(root.path()) == 6.0);
}

TEST_CASE("a container that sees its own group as the root has that group's quota") {
  const TempDir root;
  write(root / "proc/self/cgroup", "0::/docker/1f2e\n");
  write(root / "sys/fs/cgroup/cpu.max", "200000 100000\n");
  CHECK(cores_of_quota(root.path()) == 2.0);
}

TEST_CASE("there is always a core, and no quota where no group is known") {
  const TempDir root;
  CHECK(std::isinf(cores_of_quota(root.path())));
  CHECK(available_cores() >= 1);
}

TEST_SUITE_END();
