#include "cli/signals.h"

#include <unistd.h>

#include <atomic>
#include <csignal>

#include "trainer/trainer.h"

namespace rondo {

namespace {

// A handler reaches nothing but these.
std::atomic<Trainer*> stopped_trainer{nullptr};
std::atomic<int> received{0};  // the first
std::atomic<bool> is_urgent{false};

const char* reason_of(int signal) {
  switch (signal) {
    case SIGINT:
      return "interrupted by Ctrl-C";
    case SIGHUP:
      return "stopped by SIGHUP";
    default:
      return "stopped by SIGTERM";
  }
}

void stop(int signal) {
  if (signal != SIGHUP && is_urgent.exchange(true)) {
    ::_exit(128 + signal);
  }
  int none = 0;
  if (!received.compare_exchange_strong(none, signal)) {
    return;
  }
  if (Trainer* trainer = stopped_trainer.load()) {
    trainer->request_stop(reason_of(signal));
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
  is_urgent = false;
  handlers_.add({SIGINT, SIGTERM, SIGHUP}, stop);
  handlers_.add({SIGUSR1}, save);
}

StopOnSignal::~StopOnSignal() {
  handlers_.restore();
  stopped_trainer = nullptr;
}

int StopOnSignal::exit_code() const {
  return received != 0 ? 128 + received : 0;
}

}  // namespace rondo
