#pragma once

#include <vector>

namespace rondo {

/// A second base of callbacks that change what the model computes while a forward runs.
class ChangesForward {
 public:
  /// From here to `end_forward` the change holds in this thread.  \capture safe
  virtual void begin_forward() = 0;

  /// Harmless when it does not hold.
  virtual void end_forward() noexcept = 0;

  /// Whether a part of the forward can be run again later, and is changed in the same way then.
  virtual bool can_run_parts_again() const { return true; }

 protected:
  ~ChangesForward() = default;
};

/// The changes of a Trainer's callbacks, which hold while a ForwardScope is open.
struct ForwardChanges {
  std::vector<ChangesForward*> all;  ///< in the order of the callbacks, which outlive it
  int open_scopes = 0;
};

/// Has changes hold as long as it lives, however a forward ends. Scopes nest.
class ForwardScope {
 public:
  explicit ForwardScope(ForwardChanges& changes);
  ForwardScope(const ForwardScope&) = delete;
  ForwardScope& operator=(const ForwardScope&) = delete;
  ~ForwardScope();

 private:
  void end() noexcept;

  ForwardChanges& changes_;
};

}  // namespace rondo
