#pragma once

#include <atomic>

namespace rondo::detail {

/// Whether the data set of a loader drew from LibTorch's default generator; noted by the threads
/// that make batches, told once.
class RandomDraw {
 public:
  void note() {
    State unknown = State::Unseen;
    state_.compare_exchange_strong(unknown, State::Seen);
  }

  /// True once after the first `note`.
  bool take() {
    State seen = State::Seen;
    return state_.compare_exchange_strong(seen, State::Told);
  }

 private:
  enum class State { Unseen, Seen, Told };

  std::atomic<State> state_{State::Unseen};
};

}  // namespace rondo::detail
