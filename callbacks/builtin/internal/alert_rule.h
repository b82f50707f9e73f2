#pragma once

#include <cstdint>
#include <string>

namespace rondo::detail {

/// When a value is worth an alert.
struct AlertRule {
  enum class Kind { Above, AtLeast, Below, AtMost, NotFinite, NoImprovement };

  Kind kind = Kind::NotFinite;
  double bound = 0.0;    ///< of the comparisons
  int64_t patience = 0;  ///< of NoImprovement: values without one, >= 1

  /// Of a value alone; not for NoImprovement.
  bool holds(double value) const;
};

/// \throws UsageError  naming the forms that there are
AlertRule parse_alert_rule(const std::string& text);

}  // namespace rondo::detail
