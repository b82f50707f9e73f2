#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "backends/step.h"

namespace rondo {

/// The closures of one iteration, in order. Emptied, it keeps its memory: once it was as full as
/// it gets, a step queues closures without allocating.
class ClosureQueue {
 public:
  using const_iterator = std::vector<StepClosure>::const_iterator;

  void push_back(StepClosure closure) { next() = std::move(closure); }

  /// Queues a closure with the tensors from `begin` to `end`.
  template <class Iterator>
  void push_back(Iterator begin, Iterator end, const HostFunction& run, const Cadence& cadence) {
    StepClosure& closure = next();
    closure.tensors.assign(begin, end);
    closure.run = run;
    closure.cadence = cadence;
  }

  bool empty() const { return count_ == 0; }

  size_t size() const { return count_; }

  const StepClosure& operator[](size_t i) const { return closures_[i]; }

  const_iterator begin() const { return closures_.begin(); }

  const_iterator end() const { return closures_.begin() + static_cast<std::ptrdiff_t>(count_); }

  /// Lets go of tensors and functions.
  void clear() {
    for (size_t i = 0; i < count_; ++i) {
      closures_[i].tensors.clear();
      closures_[i].run = nullptr;
    }
    count_ = 0;
  }

  void swap(ClosureQueue& other) {
    closures_.swap(other.closures_);
    std::swap(count_, other.count_);
  }

 private:
  StepClosure& next() {
    if (count_ == closures_.size()) {
      closures_.emplace_back();
    }
    return closures_[count_++];
  }

  std::vector<StepClosure> closures_;  // the first `count_` are queued
  size_t count_ = 0;
};

}  // namespace rondo
