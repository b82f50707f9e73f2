#pragma once

namespace rondo {

/// A second base of callbacks that act on the run as a whole, such as one that ends it or sends
/// notifications. Dry runs skip them: the few updates that rondo trains to plan the run's memory,
/// to time its steps or to find its number of threads. A callback that adds work to the step must
/// take part in dry runs.
class NotInDryRuns {
 protected:
  ~NotInDryRuns() = default;
};

}  // namespace rondo
