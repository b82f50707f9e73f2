#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "callbacks/hooks.h"

namespace rondo {

class Trainer;

/// Calls hooks of a Trainer's callbacks, in order, and of the global ones behind them.
class HookCalls {
 public:
  /// \param trainer  which owns it
  explicit HookCalls(Trainer& trainer) : trainer_(trainer) {}

  HookCalls(const HookCalls&) = delete;
  HookCalls& operator=(const HookCalls&) = delete;

  /// Calls a hook of every callback; where `in_batch` is not null, of those of the Trainer's own
  /// that have it. \param call  calls it of one
  /// \throws HookError  naming class and hook, with the cause nested
  void call(const char* hook,
            HookSite site,
            bool BatchHooks::*in_batch,
            const std::function<void(Callback&)>& call);

  /// See `Trainer::call`, for hooks of a user's own.
  void call_custom(std::string_view hook, HookArgs& args);

  /// From here on, callbacks may lack this hook of a user's own; until as many `disallow`s.
  void allow(std::string hook) { optional_.push_back(std::move(hook)); }

  void disallow(const std::string& hook);

  /// Every callback that is called.
  std::vector<Callback*> heard() const;

 private:
  std::vector<Callback*> heard_globals() const;

  Trainer& trainer_;
  std::vector<std::string> optional_;  // hooks of a user's own
};

}  // namespace rondo
