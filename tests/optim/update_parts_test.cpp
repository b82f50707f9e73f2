#include "optim/internal/update_parts.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "support/with_threads.h"

TEST_SUITE_BEGIN("optim/update_parts");

using namespace rondo;
using namespace rondo::detail;
using namespace rondo::test;

namespace {

/// Which elements of each tensor were updated how often, and by how many threads.
struct Visits {
  explicit Visits(const std::vector<int64_t>& sizes) {
    for (const int64_t size : sizes) {
      times.emplace_back(static_cast<size_t>(size), 0);
    }
  }

  bool each_once() const {
    return std::all_of(times.begin(), times.end(), [](const std::vector<int>& of_tensor) {
      return std::all_of(of_tensor.begin(), of_tensor.end(), [](int n) { return n == 1; });
    });
  }

  std::vector<std::vector<int>> times;
  std::set<std::thread::id> threads;
};

Visits visits_of(const std::vector<int64_t>& sizes) {
  UpdateParts parts;
  for (size_t i = 0; i < sizes.size(); ++i) {
    parts.add(i, sizes[i]);
  }
  Visits visits(sizes);
  std::mutex mutex;
  parts.for_each([&](size_t i, int64_t begin, int64_t end) {
    const std::lock_guard<std::mutex> lock(mutex);
    CHECK(begin % 16 == 0);
    visits.threads.insert(std::this_thread::get_id());
    for (int64_t at = begin; at < end; ++at) {
      ++visits.times.at(i).at(static_cast<size_t>(at));
    }
  });
  return visits;
}

}  // namespace

TEST_CASE("each element of a list is updated once, whatever its tensor's size") {
  CHECK(visits_of({}).each_once());
  CHECK(visits_of({0}).each_once());
  CHECK(visits_of({1, 0, 15, 16, 17, 0}).each_once());
  CHECK(visits_of({kUpdatedByThread + 5, 3}).each_once());
}

TEST_CASE("many tensors that are small by themselves are shared out together") {
  const WithThreads three(3);
  const Visits visits = visits_of(std::vector<int64_t>(300, kUpdatedByThread / 100 + 7));
  CHECK(visits.each_once());
#if !defined(__clang__)  // whose parallel_for keeps to one thread
  CHECK(visits.threads.size() == 3);
#endif
}

TEST_CASE("a list that is not worth a thread stays on the one that calls") {
  const WithThreads three(3);
  const Visits visits = visits_of(std::vector<int64_t>(50, 100));
  CHECK(visits.each_once());
  CHECK(visits.threads == std::set<std::thread::id>{std::this_thread::get_id()});
}

TEST_CASE("gradients are scaled once, just before they are used") {
  std::vector<float> grad(5000, 3.0F);
  const float half = 0.5F;
  int64_t next = 16;
  scale_and_update<float>(grad.data(), &half, 16, 4990, [&](int64_t begin, int64_t end) {
    CHECK(begin == next);
    CHECK(std::all_of(
        grad.begin() + begin, grad.begin() + end, [](float value) { return value == 1.5F; }));
    next = end;
  });
  CHECK(next == 4990);
  CHECK(grad[15] == 3.0F);
  CHECK(grad[4990] == 3.0F);
}

TEST_SUITE_END();
