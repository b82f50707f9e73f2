#pragma once

#include <cstdint>
#include <string>

#include "core/metric_values.h"

namespace rondo {

class Trainer;

enum class AlertLevel { Warning, Error };

/// "warn" or "error".
constexpr const char* to_string(AlertLevel level) {
  return level == AlertLevel::Warning ? "warn" : "error";
}

/// Something that a user wants to know at once: see `Trainer::alert`.
struct AlertMessage {
  AlertLevel level = AlertLevel::Warning;
  std::string text;
  int64_t update = 0;
};

/// A second base of callbacks that receive alerts.
class HearsAlerts {
 public:
  virtual void on_alert(Trainer&, const AlertMessage&) = 0;

 protected:
  ~HearsAlerts() = default;
};

/// A second base of callbacks that receive each logged value, after the loggers.
class HearsMetrics {
 public:
  /// \param values  on the host; names carry their scope
  virtual void on_metrics(Trainer&, const Metrics& values, int64_t update) = 0;

 protected:
  ~HearsMetrics() = default;
};

/// A second base of callbacks that need every batch of a validation, such as one that collects
/// outputs. With such a callback each rank of a run evaluates all batches; without, ranks share
/// them, and `on_validate_batch_end` hears those of its own rank.
class HearsWholePasses {
 protected:
  ~HearsWholePasses() = default;
};

}  // namespace rondo
