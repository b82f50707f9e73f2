#include "core/parallel.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/with_threads.h"

TEST_SUITE_BEGIN("core/parallel");

using namespace rondo;
using rondo::test::WithThreads;

TEST_CASE("each item is done once, by no part smaller than the grain") {
  for (const int threads : {1, 2, 3}) {
    const WithThreads some(threads);
    for (const int64_t count : {0, 1, 7, 100}) {
      std::vector<std::atomic<int>> times(static_cast<size_t>(count));
      std::atomic<int> small{0};
      parallel_for(count, 10, [&](int64_t begin, int64_t end) {
        small += end - begin < std::min<int64_t>(count, 10) && end != count ? 1 : 0;
        for (int64_t i = begin; i < end; ++i) {
          ++times[static_cast<size_t>(i)];
        }
      });
      for (const auto& item : times) {
        CHECK(item == 1);
      }
      CHECK(small == 0);
    }
  }
}

#if defined(__GNUC__) && !defined(__clang__)

TEST_CASE("several threads are at work, and one where LibTorch has one or none is to be woken") {
  const auto threads_at_work = [] {
    std::mutex mutex;
    std::set<std::thread::id> seen;
    parallel_for(64, 1, [&](int64_t, int64_t) {
      const std::lock_guard lock(mutex);
      seen.insert(std::this_thread::get_id());
    });
    return seen.size();
  };
  {
    const WithThreads two(2);
    CHECK(threads_at_work() == 2);
    {
      const OnThisThread scope;
      CHECK(threads_at_work() == 1);
    }
    CHECK(threads_at_work() == 2);
  }
  const WithThreads one(1);
  CHECK(threads_at_work() == 1);
}

TEST_CASE("within a part there is one thread, however much there is to do") {
  const WithThreads two(2);
  std::atomic<int> most{0};
  parallel_for(2, 1, [&](int64_t, int64_t) {
    most = std::max<int>(most, threads_for(9 * kElementsOfThread));
  });
  CHECK(most == 1);
}

#endif

TEST_CASE("as many threads as have something to do") {
  const WithThreads three(3);
  CHECK(threads_for(0) == 1);
  CHECK(threads_for(2 * kElementsOfThread - 1) == 1);
  CHECK(threads_for(2 * kElementsOfThread) == 2);
  CHECK(threads_for(9 * kElementsOfThread) == 3);
}

TEST_CASE("what a part throws reaches the caller") {
  const WithThreads two(2);
  CHECK_THROWS_AS(parallel_for(64,
                               1,
                               [](int64_t, int64_t end) {
                                 if (end == 64) {
                                   throw std::out_of_range("item");
                                 }
                               }),
                  std::out_of_range);
}

TEST_CASE("items one by one") {
  const WithThreads two(2);
  std::vector<std::atomic<int>> times(7);
  parallel_for_each(7, kElementsOfThread, [&](int64_t i) { ++times[static_cast<size_t>(i)]; });
  for (const auto& item : times) {
    CHECK(item == 1);
  }
}

TEST_CASE("items with many elements are worth a thread each") {
  CHECK(grain_of(kElementsOfThread * 2) == 1);
  CHECK(grain_of(kElementsOfThread / 4) == 4);
  CHECK(grain_of(0) == kElementsOfThread);
}

TEST_SUITE_END();
