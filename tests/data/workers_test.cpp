#include <doctest/doctest.h>
#include <torch/types.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "data/data_files.h"
#include "data/data_loader.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// Lets `count` threads meet.
struct Meeting {
  std::mutex mutex;
  std::condition_variable changed;
  int arrived = 0;

  void wait_for(int count) {
    std::unique_lock lock(mutex);
    ++arrived;
    changed.notify_all();
    changed.wait(lock, [&] { return arrived >= count; });
  }
};

/// Its samples are their numbers. The first ones wait for each other, when they are to meet.
struct MeetingNumbers final : Dataset {
  struct Options {
    int64_t size = 20;
    int64_t fails_at = -1;
    std::shared_ptr<Meeting> meeting = nullptr;
    int meet = 0;
  };

  explicit MeetingNumbers(const Options& options) : o(options) {}

  int64_t size() const override { return o.size; }

  Sample get(int64_t index) const override {
    if (index == o.fails_at) {
      throw std::runtime_error("disk on fire");
    }
    if (index < o.meet) {
      o.meeting->wait_for(o.meet);
    }
    return {{"x", torch::full({}, index, torch::kLong)}};
  }

  Options o;
};

LoaderOptions by(int64_t workers, bool shuffle = true) {
  LoaderOptions options;
  options.workers = workers;
  options.shuffle = shuffle;
  return options;
}

std::vector<int64_t> values(BatchStream& stream, int64_t batches) {
  std::vector<int64_t> found;
  for (int64_t i = 0; i < batches; ++i) {
    const auto batch = stream.next();
    found.push_back(batch ? (*batch)["x"][0].item<int64_t>() : -1);
  }
  return found;
}

}  // namespace

TEST_SUITE_BEGIN("data/workers");

TEST_CASE("several workers give the batches of one, over epochs and from any position") {
  const DataLoader one(use<MeetingNumbers>(), by(1));
  for (const int64_t workers : {2, 3, 8}) {
    CAPTURE(workers);
    const DataLoader several(use<MeetingNumbers>(), by(workers));
    for (const LoaderPosition from : {LoaderPosition{0, 0}, LoaderPosition{3, 13}}) {
      const auto a = one.epochs(from, 5);
      const auto b = several.epochs(from, 5);
      CHECK(values(*a, 64) == values(*b, 64));
      CHECK(a->position().epoch == b->position().epoch);
      CHECK(a->position().sample == b->position().sample);
    }
    CHECK(values(*several.stream({}, 5), 21) == values(*one.stream({}, 5), 21));
  }
}

TEST_CASE("batches are made at once") {
  const auto meeting = std::make_shared<Meeting>();
  const DataLoader loader(use<MeetingNumbers>({20, -1, meeting, 3}), by(3, false));
  CHECK(values(*loader.stream({}, 1), 4) == std::vector<int64_t>{0, 1, 2, 3});
}

TEST_CASE("a stream that nobody reads ends at once") {
  const DataLoader loader(use<MeetingNumbers>(), by(4));
  loader.epochs({}, 1);
  const auto stream = loader.stream({}, 1);
  values(*stream, 2);
}

TEST_CASE("an error comes in its place, names the samples, and stays") {
  const DataLoader loader(use<MeetingNumbers>({20, 6, nullptr, 0}), by(3, false));
  const auto stream = loader.stream({}, 1);
  CHECK(values(*stream, 6) == std::vector<int64_t>{0, 1, 2, 3, 4, 5});
  const std::string message = message_of([&] { stream->next(); });
  CHECK(contains(message, "disk on fire"));
  CHECK(contains(message, "6"));
  CHECK(message_of([&] { stream->next(); }) == message);
}

TEST_SUITE_END();
