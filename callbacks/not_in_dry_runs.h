#pragma once

namespace rondo {

/// A second base of callbacks that mean the run itself, such as one that ends it or tells somebody
/// of it. They are left out of dry runs: the few updates that are trained aside to plan the run's
/// memory, to time its steps or to find its number of threads. A callback that adds work to the
/// step belongs into them.
class NotInDryRuns {
 protected:
  ~NotInDryRuns() = default;
};

}  // namespace rondo
