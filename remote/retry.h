#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

namespace rondo {

/// How often something is tried again that failed with a RemoteError that says so.
struct RetryPolicy {
  int64_t retries = 5;  ///< after the first try
  /// Waits so many seconds, less when told to give up; null: on the clock.
  std::function<void(double seconds)> wait = {};
  /// Set by another thread: the request in flight and all later ones fail; may be null.
  std::shared_ptr<const std::atomic<bool>> gives_up = {};

  bool is_over() const { return gives_up != nullptr && *gives_up; }
};

/// Calls `work` until it does not throw a RemoteError that can be tried again, at most
/// `1 + policy.retries` times, waiting 1, 2, 4 ... seconds, at most 60, in between.
/// \throws RemoteError  the last one
void with_retries(const RetryPolicy& policy, const std::function<void()>& work);

}  // namespace rondo
