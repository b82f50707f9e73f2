#include "cli/signals.h"

#include <unistd.h>

#include <atomic>
#include <csignal>

#include "trainer/trainer.h"

namespace rondo {

namespace {

// A handler reaches nothing but these.
std::atomic<Trainer*> stopped_trainer{nullptr};
std::atomic<int> received{0};

void stop(int signal) {
  if (received.exchange(signal) != 0) {
    ::_exit(128 + signal);
  }
  if (Trainer* trainer = stopped_trainer.load()) {
    trainer->request_stop(signal == SIGINT ? "interrupted by Ctrl-C" : "stopped by SIGTERM");
  }
}

void save(int) {
  if (Trainer* trainer = stopped_trainer.load()) {
    trainer->request_save();
  }
}

}  // namespace

StopOnSignal::StopOnSignal(Trainer& trainer) {
  stopped_trainer = &trainer;
  received = 0;
  std::signal(SIGINT, stop);
  std::signal(SIGTERM, stop);
  std::signal(SIGUSR1, save);
}

StopOnSignal::~StopOnSignal() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  std::signal(SIGUSR1, SIG_IGN);
  stopped_trainer = nullptr;
}

int StopOnSignal::exit_code() const {
  return received != 0 ? 128 + received : 0;
}

}  // namespace rondo
