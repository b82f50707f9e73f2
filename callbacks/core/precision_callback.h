#pragma once

#include <c10/core/DeviceType.h>

#include <memory>
#include <string>

#include "callbacks/callback.h"
#include "callbacks/core/precision_options.h"

namespace rondo {

/// The arithmetic of a step and what is done to gradients before the update; fills slot
/// `precision`. fp32 runs the step as written; bf16 runs forward under autocast, parameters stay
/// float32.
class PrecisionCallback : public CoreCallback {
 public:
  static constexpr const char* kSlot = "precision";

  /// Autocast for as long as it lives; its cache is cleared at the end, so that no cast from
  /// outside ends up in a recorded step.
  class AutocastScope {
   public:
    AutocastScope(bool is_on, c10::DeviceType device);
    AutocastScope(const AutocastScope&) = delete;
    AutocastScope& operator=(const AutocastScope&) = delete;
    ~AutocastScope();

   private:
    bool is_on_;
    c10::DeviceType device_;
    bool was_on_ = false;
  };

  /// \throws UsageError  naming the option that is out of range
  void pre_setup(Trainer& trainer) override;

  AutocastScope autocast(c10::DeviceType device) const {
    return AutocastScope(options_.dtype == "bf16", device);
  }

  const std::string& dtype() const { return options_.dtype; }

  /// Clips by norm or by value, as asked.  \capture safe: tensor work only
  void clip_gradients(Optimizer& optimizer) const;

 private:
  PrecisionOptions options_;
};

}  // namespace rondo
