#include "callbacks/global_callbacks.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace rondo {

namespace {

/// The process-wide registry: each callback with the number of scopes that hold it.
struct Registrations {
  std::mutex mutex;
  std::vector<std::pair<Callback*, int>> counts;

  auto find(const Callback* callback) {
    return std::find_if(
        counts.begin(), counts.end(), [&](const auto& item) { return item.first == callback; });
  }
};

Registrations& registrations() {
  static Registrations all;
  return all;
}

}  // namespace

GlobalCallbackScope::GlobalCallbackScope(Callback& callback) : callback_(&callback) {
  Registrations& all = registrations();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto known = all.find(callback_);
  if (known != all.counts.end()) {
    ++known->second;
  } else {
    all.counts.emplace_back(callback_, 1);
  }
}

GlobalCallbackScope::~GlobalCallbackScope() {
  remove();
}

void GlobalCallbackScope::remove() {
  Callback* const callback = std::exchange(callback_, nullptr);
  if (callback == nullptr) {
    return;
  }
  Registrations& all = registrations();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto known = all.find(callback);
  if (known != all.counts.end() && --known->second == 0) {
    all.counts.erase(known);
  }
}

std::vector<Callback*> global_callbacks() {
  Registrations& all = registrations();
  const std::lock_guard<std::mutex> lock(all.mutex);
  std::vector<Callback*> callbacks;
  for (const auto& item : all.counts) {
    callbacks.push_back(item.first);
  }
  return callbacks;
}

}  // namespace rondo
