#include "cli/rank_processes.h"

#include <algorithm>
#include <csignal>

#include "core/error.h"
#include "distributed/free_port.h"

namespace rondo {

RankProcesses::RankProcesses(int64_t ranks, const Work& work) {
  const int port = free_port();
  if (ranks > 1 && port == 0) {
    throw IoError("the ranks find no port to meet at", 0);
  }
  for (int64_t i = 0; i < ranks; ++i) {
    const LaunchEnvironment place =
        rank_of_one_host(static_cast<int>(i), static_cast<int>(ranks), port);
    ranks_.push_back(
        {std::make_unique<ChildProcess>([&work, place] { return work(place); }), std::nullopt});
  }
}

ChildEnd RankProcesses::first_failure() const {
  const auto failed = std::find_if(
      ranks_.begin(), ranks_.end(), [](const Rank& rank) { return !rank.end->is_done(); });
  return *(failed != ranks_.end() ? *failed : ranks_.front()).end;
}

ChildEnd RankProcesses::wait() {
  for (Rank& rank : ranks_) {
    if (!rank.end) {
      rank.end = rank.process->wait();
    }
  }
  return first_failure();
}

std::optional<ChildEnd> RankProcesses::wait_for(std::chrono::nanoseconds time) {
  const auto deadline = std::chrono::steady_clock::now() + time;
  bool have_ended = true;
  for (Rank& rank : ranks_) {
    if (!rank.end) {
      rank.end = rank.process->wait_for(deadline - std::chrono::steady_clock::now());
    }
    have_ended = have_ended && rank.end;
  }
  return have_ended ? std::optional(first_failure()) : std::nullopt;
}

bool RankProcesses::kill_one(std::mt19937_64& random) {
  constexpr std::chrono::seconds kToFindOut(10);  // who has not met the others waits for longer
  std::vector<Rank*> running;
  for (Rank& rank : ranks_) {
    if (rank.end && !rank.end->is_done()) {
      return false;
    }
    if (!rank.end) {
      running.push_back(&rank);
    }
  }
  std::uniform_int_distribution<size_t> which(0, running.size() - 1);
  running[which(random)]->process->send(SIGKILL);
  if (!wait_for(kToFindOut)) {
    for (const Rank& rank : ranks_) {
      if (!rank.end) {
        rank.process->send(SIGKILL);
      }
    }
    wait();
  }
  return true;
}

}  // namespace rondo
