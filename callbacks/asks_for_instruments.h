#pragma once

#include <cstdint>

namespace rondo {

/// A second base of callbacks that want the time of each instruction of recorded steps, which
/// `Backend::reports` then has.
class AsksForTimeline {
 public:
  /// Replays of each step that are timed, >= 1.
  virtual int64_t timed_replays() const = 0;

 protected:
  ~AsksForTimeline() = default;
};

}  // namespace rondo
