#include "distributed/heartbeat.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

namespace rondo {

namespace {

using Counter = std::atomic<uint64_t>;
static_assert(Counter::is_always_lock_free);

constexpr const char* kVariable = "RONDO_HEARTBEAT";

/// Zero at first. \return null when that cannot be
void* shared_counter(int memory) {
  struct stat status = {};
  if (::fstat(memory, &status) != 0 || status.st_size < static_cast<off_t>(sizeof(Counter))) {
    return nullptr;
  }
  void* const found =
      ::mmap(nullptr, sizeof(Counter), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  return found == MAP_FAILED ? nullptr : found;
}

/// That of the launcher, which programs that this process starts do not need.
Counter* counter_of_launcher() {
  const char* const memory = std::getenv(kVariable);
  if (memory == nullptr) {
    return nullptr;
  }
  const int descriptor = std::atoi(memory);
  ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  return static_cast<Counter*>(shared_counter(descriptor));
}

}  // namespace

Heartbeat::Heartbeat() : memory_(::memfd_create("rondo_heartbeat", 0)) {
  if (memory_.get() >= 0 && ::ftruncate(memory_.get(), sizeof(Counter)) == 0) {
    counter_ = shared_counter(memory_.get());
  }
}

Heartbeat::~Heartbeat() {
  if (counter_ != nullptr) {
    ::munmap(counter_, sizeof(Counter));
  }
}

std::pair<std::string, std::string> Heartbeat::variable() const {
  return {kVariable, std::to_string(memory_.get())};
}

uint64_t Heartbeat::count() const {
  return counter_ == nullptr ? 0 : static_cast<const Counter*>(counter_)->load();
}

void beat() {
  static Counter* const counter = counter_of_launcher();
  if (counter != nullptr) {
    counter->fetch_add(1, std::memory_order_relaxed);
  }
}

}  // namespace rondo
