#include "callbacks/early_exit_callback.h"

#include <algorithm>

namespace rondo {

EarlyExitCallback::Handle EarlyExitCallback::add(std::function<bool()> should_exit) {
  functions_.emplace(next_handle_, std::move(should_exit));
  return next_handle_++;
}

bool EarlyExitCallback::should_exit() {
  was_true_ = was_true_ || std::any_of(functions_.begin(), functions_.end(), [](const auto& item) {
                return item.second();
              });
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
