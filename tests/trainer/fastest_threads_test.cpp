#include "trainer/fastest_threads.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

TEST_SUITE_BEGIN("trainer/fastest_threads");

using namespace rondo;

namespace {

/// Of each number of threads the seconds of its rounds, the last one again and again. Nothing: a
/// failure.
using Times = std::map<int, std::vector<std::optional<double>>>;

class Script {
 public:
  explicit Script(Times times) : times_(std::move(times)) {}

  ThreadTimings run() {
    std::vector<int> numbers;
    for (const auto& [threads, times] : times_) {
      numbers.push_back(threads);
    }
    const auto time = [this](int threads) {
      order_.push_back(threads);
      const std::vector<std::optional<double>>& times = times_.at(threads);
      const auto round = static_cast<size_t>(rounds_[threads]++);
      const std::optional<double> seconds = times[std::min(round, times.size() - 1)];
      return UpdateTime{seconds, seconds ? "" : "no memory"};
    };
    const auto gives_up = [this] { return static_cast<int>(order_.size()) == gives_up_behind_; };
    return time_in_turns(numbers, {time, gives_up});
  }

  /// How often updates were timed under so many threads.
  int rounds(int threads) const {
    const auto found = rounds_.find(threads);
    return found != rounds_.end() ? found->second : 0;
  }

  const std::vector<int>& order() const { return order_; }

  void give_up_behind(int timings) { gives_up_behind_ = timings; }

 private:
  Times times_;
  std::map<int, int> rounds_;
  std::vector<int> order_;
  int gives_up_behind_ = -1;
};

}  // namespace

TEST_CASE("the fastest is taken, and timed in turns with those near it") {
  Script script(Times{{1, {1.0}}, {2, {0.9}}, {4, {0.95}}});
  const ThreadTimings timings = script.run();
  CHECK(timings.best().threads == 2);
  CHECK(timings.best().seconds == 0.9);
  CHECK(timings.trouble.empty());
  CHECK(script.order() == std::vector<int>{1, 2, 4, 1, 2, 4, 1, 2, 4, 1, 2, 4, 1, 2, 4, 1, 2, 4});
}

TEST_CASE("more threads are taken where they gain three percent") {
  CHECK(Script(Times{{1, {1.0}}, {2, {0.98}}}).run().best().threads == 1);
  CHECK(Script(Times{{1, {1.0}}, {2, {0.96}}}).run().best().threads == 2);
}

TEST_CASE("a number that was slow while the machine was busy is timed again, and taken") {
  Script at_first(Times{{1, {1.9, 0.8}}, {2, {1.0}}});
  CHECK(at_first.run().best().threads == 1);
  Script for_two_rounds(Times{{1, {1.2, 1.2, 0.8}}, {2, {1.0}}});
  CHECK(for_two_rounds.run().best().threads == 1);
}

TEST_CASE("a number that is far from the fastest is not timed again") {
  Script at_once(Times{{1, {1.0}}, {2, {0.9}}, {4, {2.0}}});
  CHECK(at_once.run().best().threads == 2);
  CHECK(at_once.rounds(4) == 1);
  Script in_the_second(Times{{1, {1.0}}, {2, {0.9}}, {4, {1.5}}});
  CHECK(in_the_second.run().best().threads == 2);
  CHECK(in_the_second.rounds(4) == 2);
  Script alone(Times{{1, {1.0}}, {2, {2.5}}});
  CHECK(alone.run().best().threads == 1);
  CHECK(alone.rounds(1) == 1);
}

TEST_CASE("one number of threads is timed once") {
  Script script(Times{{1, {1.0}}});
  CHECK(script.run().best().seconds == 1.0);
  CHECK(script.rounds(1) == 1);
}

TEST_CASE("trouble ends the timing behind its round, with the times that there are") {
  Script script(Times{{1, {1.0}}, {2, {std::nullopt}}, {4, {0.9}}});
  const ThreadTimings timings = script.run();
  CHECK(timings.trouble == "no memory");
  CHECK(timings.best().threads == 4);
  CHECK_FALSE(timings.all[1].is_timed());
  CHECK(script.order() == std::vector<int>{1, 2, 4});
  CHECK_FALSE(Script(Times{{1, {std::nullopt}}, {2, {std::nullopt}}}).run().best().is_timed());
}

TEST_CASE("giving up ends it at once") {
  Script script(Times{{1, {1.0}}, {2, {0.9}}});
  script.give_up_behind(1);
  CHECK(script.run().best().threads == 1);
  CHECK(script.order() == std::vector<int>{1});
}

TEST_SUITE_END();
