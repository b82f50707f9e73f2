#include "remote/retry.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "remote/remote_error.h"

namespace rondo {

namespace {

constexpr double kLongestWait = 60.0;  // seconds
constexpr double kSlice = 0.1;         // how late giving up may be

void wait(const RetryPolicy& policy, double seconds) {
  if (policy.wait) {
    policy.wait(seconds);
    return;
  }
  for (double waited = 0.0; waited < seconds && !policy.is_over(); waited += kSlice) {
    std::this_thread::sleep_for(std::chrono::duration<double>(kSlice));
  }
}

}  // namespace

void with_retries(const RetryPolicy& policy, const std::function<void()>& work) {
  for (int64_t tried = 0;; ++tried) {
    try {
      work();
      return;
    } catch (const RemoteError& error) {
      if (!error.can_retry || tried >= policy.retries || policy.is_over()) {
        throw;
      }
    }
    wait(policy, std::min(std::exp2(static_cast<double>(tried)), kLongestWait));
  }
}

}  // namespace rondo
