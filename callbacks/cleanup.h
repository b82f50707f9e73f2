#pragma once

#include <exception>
#include <functional>
#include <vector>

namespace rondo {

/// Undo actions that run when a scope (fit, a training stage, a validation) ends, normally or by an
/// exception. The scope's owner closes it explicitly, because actions may throw.
class Cleanup {
 public:
  /// Receives the exception that ends the scope; null when it ends normally.
  using Action = std::function<void(const std::exception_ptr& error)>;

  Cleanup() = default;
  Cleanup(const Cleanup&) = delete;
  Cleanup& operator=(const Cleanup&) = delete;

  /// Runs the remaining actions and drops their errors: only for an owner that is destroyed
  /// half-way.
  ~Cleanup();

  void push(Action action) { actions_.push_back(std::move(action)); }

  /// Runs the actions, last pushed first, and forgets them. All run, even if some throw.
  /// \param error  what ends the scope; null for a normal end
  /// \return the exception that the caller must throw: `error`, or the first that an action
  ///         threw, with `error` nested; null when there is none
  [[nodiscard]] std::exception_ptr close(std::exception_ptr error);

 private:
  std::vector<Action> actions_;
};

}  // namespace rondo
