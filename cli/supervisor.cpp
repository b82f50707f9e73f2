#include "cli/supervisor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <initializer_list>
#include <iostream>
#include <thread>

#include "cli/child_process.h"
#include "cli/signal_handlers.h"

namespace rondo {

namespace {

constexpr std::initializer_list<int> kHandedOn = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};

// A handler reaches nothing but these.
std::atomic<const ChildProcess*> child_at_work{nullptr};
std::atomic<int> stop_signal{0};

void hand_on(int signal) {
  if (signal != SIGUSR1) {
    stop_signal = signal;
  }
  if (const ChildProcess* child = child_at_work.load()) {
    child->send(signal);
  }
}

ChildEnd attempt(const std::function<int()>& work, SignalHandlers& handed_on) {
  const HoldSignals until_there_is_a_child(kHandedOn);
  ChildProcess child([&] {
    ::setpgid(0, 0);  // a Ctrl-C of the terminal comes through the supervisor, once
    handed_on.restore();
    std::signal(SIGUSR1, SIG_IGN);  // until there is a run to save
    until_there_is_a_child.release();
    return work();
  });
  child_at_work = &child;
  until_there_is_a_child.release();
  const ChildEnd end = child.wait();
  child_at_work = nullptr;
  return end;
}

std::string told(const ChildEnd& end) {
  return end.signal != 0 ? fmt::format("died of signal {}", end.signal) : "failed";
}

void wait_before(int64_t fruitless) {
  constexpr int64_t kLongest = 60;
  const int64_t seconds =
      fruitless == 0 ? 0 : std::min(kLongest, int64_t{1} << std::min<int64_t>(fruitless - 1, 6));
  for (int64_t tenth = 0; tenth < 10 * seconds && stop_signal == 0; ++tenth) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

}  // namespace

int supervise(int64_t max_restarts,
              const std::function<int(int64_t restarts)>& work,
              const std::function<int64_t()>& progress) {
  stop_signal = 0;
  SignalHandlers handed_on;
  handed_on.add(kHandedOn, hand_on);
  int64_t before = progress();
  int64_t fruitless = 0;
  for (int64_t restarts = 0;; ++restarts) {
    const ChildEnd end = attempt([&] { return work(restarts); }, handed_on);
    const int code = end.signal != 0 ? 128 + end.signal : end.code;
    const bool has_failed = end.signal != 0 || end.code == 1;
    if (!has_failed || stop_signal != 0) {
      return code;
    }
    const int64_t now = progress();
    fruitless = now > before ? 0 : fruitless + 1;
    before = now;
    if (fruitless > max_restarts) {
      std::cerr << fmt::format(
          "the run {} at update {}; {} attempts in a row made no progress: not restarting it\n",
          told(end),
          now,
          fruitless);
      return code;
    }
    std::cerr << fmt::format(
        "the run {}; restarting it from update {} (restart {})\n", told(end), now, restarts + 1);
    wait_before(fruitless);
    if (stop_signal != 0) {
      return 128 + stop_signal;
    }
  }
}

}  // namespace rondo
