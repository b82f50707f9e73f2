#pragma once

#include <vector>

#include "callbacks/callback.h"

namespace rondo {

/// Registers a callback with every Trainer of the process for as long as the scope lives. Global
/// callbacks are called after a Trainer's own, in registration order. Entering twice registers
/// once.
class GlobalCallbackScope {
 public:
  /// \param callback  borrowed; must outlive the scope
  explicit GlobalCallbackScope(Callback& callback);
  GlobalCallbackScope(const GlobalCallbackScope&) = delete;
  GlobalCallbackScope& operator=(const GlobalCallbackScope&) = delete;
  ~GlobalCallbackScope();

  /// Ends the scope early; harmless when it has ended.
  void remove();

 private:
  Callback* callback_;
};

/// The registered callbacks, in registration order.
std::vector<Callback*> global_callbacks();

}  // namespace rondo
