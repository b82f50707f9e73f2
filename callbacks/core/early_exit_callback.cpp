#include "callbacks/core/early_exit_callback.h"

#include <utility>

namespace rondo {

EarlyExitCallback::Handle EarlyExitCallback::add(std::function<bool()> should_exit) {
  functions_.emplace(next_handle_,
                     std::make_shared<const std::function<bool()>>(std::move(should_exit)));
  return next_handle_++;
}

bool EarlyExitCallback::should_exit() {
  for (auto item = functions_.begin(); item != functions_.end() && !was_true_;) {
    const auto [handle, function] = *item;  // kept: it may remove itself, or others
    was_true_ = (*function)();
    item = functions_.upper_bound(handle);
  }
  return was_true_;
}

void EarlyExitCallback::on_enter_fit(
    Trainer&, Cleanup& cleanup, const DataLoader&, const Loaders&, Loop&) {
  forget_at_end(cleanup);
}

void EarlyExitCallback::on_enter_validate_all(
    Trainer&, Cleanup& cleanup, const Loaders&, Loop&, const Paths&) {
  forget_at_end(cleanup);
}

void EarlyExitCallback::on_enter_validate(Trainer&, Cleanup& cleanup, const DataLoader&, Loop&) {
  forget_at_end(cleanup);
}

void EarlyExitCallback::forget_at_end(Cleanup& cleanup) {
  ++depth_;
  cleanup.push([this](const std::exception_ptr&) {
    if (--depth_ == 0) {
      functions_.clear();
      was_true_ = false;
    }
  });
}

}  // namespace rondo
