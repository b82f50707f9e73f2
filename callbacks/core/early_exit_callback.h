#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "callbacks/callback.h"

namespace rondo {

/// Ends a run early but cleanly: end hooks run, remaining training and validation does not. Fills
/// slot `early_exit`.
class EarlyExitCallback : public CoreCallback {
 public:
  static constexpr const char* kSlot = "early_exit";

  using Handle = int64_t;

  /// Adds a function that is called after every batch until the running fit or validation ends. It
  /// may add and remove functions.
  /// \return the handle for `remove`
  Handle add(std::function<bool()> should_exit);

  void remove(Handle handle) { functions_.erase(handle); }

  /// True once any function has returned true, until the outermost run ends.
  virtual bool should_exit();

  void on_enter_fit(Trainer&, Cleanup&, const DataLoader&, const Loaders&, Loop&) override;
  void on_enter_validate_all(Trainer&, Cleanup&, const Loaders&, Loop&, const Paths&) override;
  void on_enter_validate(Trainer&, Cleanup&, const DataLoader&, Loop&) override;

 private:
  void forget_at_end(Cleanup& cleanup);

  std::map<Handle, std::shared_ptr<const std::function<bool()>>> functions_;
  Handle next_handle_ = 0;
  bool was_true_ = false;
  int depth_ = 0;  // of nested runs
};

}  // namespace rondo
