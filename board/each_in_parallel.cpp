#include "board/each_in_parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace rondo {

void each_in_parallel(size_t count, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::exception_ptr first;
  const auto take = [&] {
    for (size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        const std::lock_guard<std::mutex> lock(mutex);
        first = first ? first : std::current_exception();
      }
    }
  };
  const size_t cores = std::max(std::thread::hardware_concurrency(), 1U);
  std::vector<std::thread> threads;
  for (size_t i = 1; i < std::min({cores, count, size_t{8}}); ++i) {
    try {
      threads.emplace_back(take);
    } catch (const std::system_error&) {
      break;  // no more threads: those that there are do it
    }
  }
  take();
  for (std::thread& thread : threads) {
    thread.join();
  }
  if (first) {
    std::rethrow_exception(first);
  }
}

}  // namespace rondo
