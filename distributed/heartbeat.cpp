#include "distributed/heartbeat.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace rondo {

namespace {

using Counter = std::atomic<uint64_t>;
static_assert(Counter::is_always_lock_free);

constexpr const char* kVariable = "RONDO_HEARTBEAT";
constexpr const char* kMemory = "rondo_heartbeat";

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

/// A program that a rank starts gets the variable but not the memory: there the number may stand
/// for any other file.
bool is_heartbeat(int descriptor) {
  std::error_code error;
  const std::string file =
      std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", descriptor), error).string();
  return file.rfind(std::string("/memfd:") + kMemory, 0) == 0;
}

/// That of the launcher; null where there is none.
Counter* counter_of_launcher() {
  const char* const memory = std::getenv(kVariable);
  const int descriptor = memory == nullptr ? -1 : std::atoi(memory);
  if (!is_heartbeat(descriptor)) {
    return nullptr;
  }
  ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  return static_cast<Counter*>(shared_counter(descriptor));
}

}  // namespace

Heartbeat::Heartbeat() : memory_(::memfd_create(kMemory, 0)) {
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
