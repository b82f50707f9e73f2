#include "distributed/launch_environment.h"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "core/error.h"

using rondo::first_host;
using rondo::LaunchEnvironment;
using rondo::read_launch_environment;

namespace {

using Environment = std::map<std::string, std::string>;

std::optional<LaunchEnvironment> read(const Environment& environment) {
  return read_launch_environment([&](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

Environment with(Environment environment, const Environment& more) {
  for (const auto& [name, value] : more) {
    environment[name] = value;
  }
  return environment;
}

const Environment kTorchrun = {{"RANK", "3"},
                               {"WORLD_SIZE", "4"},
                               {"LOCAL_RANK", "1"},
                               {"LOCAL_WORLD_SIZE", "2"},
                               {"GROUP_RANK", "1"},
                               {"MASTER_ADDR", "alpha"},
                               {"MASTER_PORT", "29511"},
                               {"TORCHELASTIC_RUN_ID", "none"},
                               {"TORCHELASTIC_USE_AGENT_STORE", "True"}};
const Environment kMpirun = {{"OMPI_COMM_WORLD_RANK", "1"},
                             {"OMPI_COMM_WORLD_SIZE", "2"},
                             {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                             {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                             {"PMIX_NAMESPACE", "prterun-host-123@1"}};
const Environment kSrun = {{"SLURM_PROCID", "2"},
                           {"SLURM_STEP_NUM_TASKS", "4"},
                           {"SLURM_LOCALID", "0"},
                           {"SLURM_NODEID", "1"},
                           {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"},
                           {"SLURM_STEP_NODELIST", "node[07-08]"},
                           {"SLURM_JOB_ID", "4711"}};

/// What the message names, or "" when there is none.
std::string fault_of(const Environment& environment) {
  try {
    read(environment);
    return "";
  } catch (const rondo::UsageError& error) {
    return error.what();
  }
}

}  // namespace

TEST_SUITE_BEGIN("distributed/launch_environment");

TEST_CASE("a process that nobody launched has no ranks") {
  CHECK_FALSE(read({}));
  CHECK_FALSE(read({{"MASTER_ADDR", "alpha"}, {"MASTER_PORT", "29500"}}));
  CHECK_FALSE(read({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}));  // a batch script
  CHECK_FALSE(read({{"RANK", ""}, {"WORLD_SIZE", ""}}));
}

TEST_CASE("ranks are read from what torchrun, mpirun and srun set") {
  const auto torchrun = read(kTorchrun);
  REQUIRE(torchrun);
  CHECK(torchrun->launcher == "torchrun");
  CHECK(torchrun->rank == 3);
  CHECK(torchrun->world_size == 4);
  CHECK(torchrun->local_rank == 1);
  CHECK(torchrun->local_world_size == 2);
  CHECK(torchrun->node_rank == 1);
  CHECK(torchrun->master_addr == "alpha");
  CHECK(torchrun->master_port == 29511);
  CHECK(torchrun->store_is_there);

  const auto mpirun = read(kMpirun);
  REQUIRE(mpirun);
  CHECK(mpirun->launcher == "mpirun");
  CHECK(mpirun->rank == 1);
  CHECK(mpirun->world_size == 2);
  CHECK(mpirun->master_addr == "127.0.0.1");
  CHECK(mpirun->master_port >= 20000);
  CHECK(mpirun->master_port == read(with(kMpirun, {{"OMPI_COMM_WORLD_RANK", "0"}}))->master_port);
  CHECK_FALSE(mpirun->store_is_there);

  const auto srun = read(kSrun);
  REQUIRE(srun);
  CHECK(srun->launcher == "srun");
  CHECK(srun->rank == 2);
  CHECK(srun->world_size == 4);
  CHECK(srun->local_world_size == 2);
  CHECK(srun->node_rank == 1);
  CHECK(srun->master_addr == "node07");
  CHECK(srun->master_port >= 20000);
}

TEST_CASE("a rank and a world size are enough on one host, with a port") {
  const auto found = read({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "29500"}});
  REQUIRE(found);
  CHECK(found->local_rank == 1);
  CHECK(found->local_world_size == 2);
  CHECK(found->master_addr == "127.0.0.1");
  const auto alone = read({{"RANK", "0"}, {"WORLD_SIZE", "1"}});
  REQUIRE(alone);
  CHECK(alone->world_size == 1);
}

TEST_CASE("variables that are missing, wrong or at odds are errors that name them") {
  struct Row {
    Environment environment;
    std::vector<std::string> names;
  };

  const std::vector<Row> rows = {
      {{{"RANK", "1"}}, {"RANK", "WORLD_SIZE"}},
      {{{"WORLD_SIZE", "2"}}, {"RANK", "WORLD_SIZE"}},
      {{{"RANK", "2"}, {"WORLD_SIZE", "2"}}, {"RANK is 2", "WORLD_SIZE is 2"}},
      {{{"RANK", "one"}, {"WORLD_SIZE", "2"}}, {"RANK", "\"one\""}},
      {{{"RANK", "-1"}, {"WORLD_SIZE", "2"}}, {"RANK", "\"-1\""}},
      {{{"RANK", "0"}, {"WORLD_SIZE", "0"}}, {"WORLD_SIZE", "\"0\""}},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}}, {"MASTER_PORT"}},
      {with(kTorchrun, {{"MASTER_PORT", "65536"}}), {"MASTER_PORT", "\"65536\""}},
      {with(kTorchrun, {{"MASTER_ADDR", ""}}), {"MASTER_ADDR"}},
      {with(kTorchrun, {{"LOCAL_WORLD_SIZE", "8"}}), {"8 ranks on this host", "4 in all"}},
      {with(kTorchrun, {{"LOCAL_RANK", "2"}}), {"LOCAL_RANK is 2", "LOCAL_WORLD_SIZE is 2"}},
      {with(kTorchrun, {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "4"}}),
       {"rank 3 of 4", "rank 1 of 4"}},
      {with(kSrun, {{"RANK", "2"}, {"WORLD_SIZE", "8"}, {"MASTER_PORT", "1"}}), {"of 8", "of 4"}},
  };
  for (const Row& row : rows) {
    const std::string fault = fault_of(row.environment);
    CAPTURE(fault);
    for (const std::string& name : row.names) {
      CAPTURE(name);
      CHECK(fault.find(name) != std::string::npos);
    }
  }
}

TEST_CASE("C87: a rank finds the nine variables of its launcher, and reads them back") {
  LaunchEnvironment rank;
  rank.rank = 5;
  rank.world_size = 8;
  rank.local_rank = 1;
  rank.local_world_size = 4;
  rank.node_rank = 1;
  rank.master_addr = "10.0.0.7";
  rank.master_port = 29501;
  rank.launcher = LaunchEnvironment::kRondoLaunch;
  rank.first_world_size = 16;
  Environment environment;
  for (const auto& [name, value] : rondo::variables_of(rank)) {
    environment[name] = value;
  }
  const Environment expected = {{"RANK", "5"},
                                {"WORLD_SIZE", "8"},
                                {"LOCAL_RANK", "1"},
                                {"LOCAL_WORLD_SIZE", "4"},
                                {"NODE_RANK", "1"},
                                {"MASTER_ADDR", "10.0.0.7"},
                                {"MASTER_PORT", "29501"},
                                {"PYTHONUNBUFFERED", "1"},
                                {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"}};
  for (const auto& [name, value] : expected) {
    CAPTURE(name);
    CHECK(environment[name] == value);
  }
  const auto read_back = read(environment);
  REQUIRE(read_back);
  CHECK(read_back->is_rondo_launch());
  CHECK(read_back->rank == 5);
  CHECK(read_back->local_rank == 1);
  CHECK(read_back->node_rank == 1);
  CHECK(read_back->master_port == 29501);
  CHECK(read_back->first_world_size == 16);
}

TEST_CASE("the first host of a list of SLURM") {
  CHECK(first_host("alpha") == "alpha");
  CHECK(first_host("alpha,beta") == "alpha");
  CHECK(first_host("node[07-09,12],login") == "node07");
  CHECK(first_host("node[3]") == "node3");
  CHECK(first_host("login,node[1-2]") == "login");
}

TEST_SUITE_END();
