#pragma once

#include <cstdint>
#include <string>

#include "callbacks/hooks.h"

namespace rondo {

/// Fires the hooks of a validation: `on_validate_…`, `on_predict_…`, or the family of a validation
/// loop with a name of its own, whose hooks are custom ones and get their arguments by name
/// ("model", "batch", "outputs", "batch_idx", "loader", "loop", each a pointer or an int64_t).
class ValidationHooks {
 public:
  ValidationHooks(Trainer& trainer, std::string family)
      : trainer_(trainer), family_(std::move(family)) {}

  void start(Model& model, const DataLoader& loader, Loop& loop) const;
  void end(Model& model, Loop& loop) const;
  void batch_start(Model& model, const Batch& batch, int64_t batch_idx) const;
  void batch_end(Model& model, const Outputs& outputs, const Batch& batch, int64_t batch_idx) const;
  void step_start(Model& model, const Batch& batch) const;
  void step_end(Model& model, const Outputs& outputs, const Batch& batch) const;

  /// Callbacks need not have the custom names until `disallow`; nothing for families of Callback.
  void allow() const;
  void disallow() const;

 private:
  bool is_custom() const { return family_ != "validate" && family_ != "predict"; }

  /// Calls the hook of family "validate" or "predict".
  template <class... Params, class... Args>
  void call(const Hook<Params...>& validate, const Hook<Params...>& predict, Args&&... args) const;

  std::string name(const char* suffix) const { return "on_" + family_ + suffix; }

  Trainer& trainer_;
  std::string family_;
};

}  // namespace rondo
