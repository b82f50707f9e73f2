#pragma once

#include <exception>
#include <functional>
#include <vector>

namespace rondo {

/// What has to be undone when a scope (fit, a training stage, a validation) is left, normally or
/// by an exception. Closed explicitly by the scope's owner, because actions may throw.
class Cleanup {
 public:
  /// Gets the exception that ends the scope; null when it ends normally.
  using Action = std::function<void(const std::exception_ptr& error)>;

  Cleanup() = default;
  Cleanup(const Cleanup&) = delete;
  Cleanup& operator=(const Cleanup&) = delete;

  /// Runs what was not closed and drops its errors: only for an owner that is destroyed half-way.
  ~Cleanup();

  void push(Action action) { actions_.push_back(std::move(action)); }

  /// Runs the actions, last pushed first, and forgets them. All run, whatever the others do.
  /// \param error  what ends the scope; null for a normal end
  /// \return the exception that the caller has to throw: `error`, or the first one that an action
  /// threw,
  ///         with `error` nested; null when there is none
  [[nodiscard]] std::exception_ptr close(std::exception_ptr error);

 private:
  std::vector<Action> actions_;
};

}  // namespace rondo
