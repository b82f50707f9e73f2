// Ranks as processes, which die, freeze and do not start. Each runs the last case of this file.

#include <doctest/doctest.h>
#include <torch/types.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "distributed/connect.h"
#include "distributed/free_port.h"
#include "distributed/internal/gloo_link.h"
#include "ranks.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace fs = std::filesystem;

using rondo::test::Process;
using rondo::test::TempDir;

namespace {

constexpr const char* kRankCase = "one of the ranks";

std::string content(const fs::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// A run of two ranks, of which the second does what a word says.
struct Pair {
  Pair(const char* transport, const char* fate, int count = 2) {
    const int port = rondo::free_port();
    for (int rank = 0; rank < count; ++rank) {
      std::vector<std::string> arguments = {"/usr/bin/env"};
      for (const auto& [name, value] : variables_of(rondo::rank_of_one_host(rank, 2, port))) {
        arguments.push_back(name + "=" + value);
      }
      arguments.push_back(std::string("FATE=") + fate);
      arguments.push_back("STARTED=" + (dir / "started").string());
      arguments.push_back(std::string("TRANSPORT=") + transport);
      arguments.push_back(fs::read_symlink("/proc/self/exe").string());
      arguments.push_back(std::string("--test-case=") + kRankCase);
      arguments.push_back("--no-skip=true");
      ranks.push_back(std::make_unique<Process>(arguments, output_of(rank)));
    }
  }

  fs::path output_of(int rank) const { return dir / ("rank" + std::to_string(rank)).c_str(); }

  TempDir dir;
  std::vector<std::unique_ptr<Process>> ranks;
};

std::vector<const char*> transports() {
  return rondo::has_gloo() ? std::vector<const char*>{"shm", "gloo"}
                           : std::vector<const char*>{"shm"};
}

/// Starting takes as long as it takes; what is tested comes after it.
void wait_for_all(const std::string& started) {
  std::ofstream(started + std::getenv("RANK")) << "";
  while (!fs::exists(started + "0") || !fs::exists(started + "1")) {
    ::usleep(1000);
  }
}

}  // namespace

TEST_SUITE_BEGIN("distributed/lost_rank");

TEST_CASE("a rank that is killed ends the other one, which names it") {
  for (const char* transport : transports()) {
    CAPTURE(transport);
    Pair run(transport, "kill");
    CHECK(run.ranks[1]->wait() == -1 - SIGKILL);
    run.ranks[0]->wait();
    const std::string said = content(run.output_of(0));
    CAPTURE(said);
    CHECK(said.find("PeerLostError: rank 0 lost rank 1") != std::string::npos);
    CHECK((said.find("is gone") != std::string::npos ||
           said.find("Connection") != std::string::npos));
  }
}

TEST_CASE("a rank that is frozen ends the other one after the timeout") {
  for (const char* transport : transports()) {
    CAPTURE(transport);
    Pair run(transport, "freeze");
    run.ranks[0]->wait();
    const std::string said = content(run.output_of(0));
    CAPTURE(said);
    CHECK(said.find("PeerLostError: rank 0 lost rank 1") != std::string::npos);
    run.ranks[1]->send(SIGKILL);
    run.ranks[1]->wait();
  }
}

TEST_CASE("a rank that does not start is named") {
  Pair run("auto", "none", 1);
  run.ranks[0]->wait();
  const std::string said = content(run.output_of(0));
  CAPTURE(said);
  CHECK(said.find("PeerLostError: rank 0 of 2 waited 3 s for rank 1") != std::string::npos);
}

TEST_CASE("one of the ranks" * doctest::skip()) {
  const std::string fate = std::getenv("FATE") != nullptr ? std::getenv("FATE") : "";
  if (fate.empty()) {
    return;  // it is none
  }
  rondo::DistributedOptions options;
  options.transport = std::getenv("TRANSPORT");
  // Meeting takes as long as it takes; a frozen rank is waited for in vain.
  options.timeout = fate == "kill" ? "120sec" : fate == "freeze" ? "10sec" : "3sec";
  if (fate != "none") {
    wait_for_all(std::getenv("STARTED"));
  }
  try {
    const auto ranks = rondo::connect_ranks(std::optional(options), rondo::TextLog());
    for (int i = 0; i < 5; ++i) {
      at::Tensor values = torch::ones({100});
      if (ranks->rank() == 1 && i == 3) {
        ::raise(fate == "kill" ? SIGKILL : SIGSTOP);
      }
      ranks->all_reduce(values);
    }
  } catch (const rondo::PeerLostError& error) {
    std::cout << "PeerLostError: " << error.what() << std::endl;
  }
}

TEST_SUITE_END();
