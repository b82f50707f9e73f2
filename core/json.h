#pragma once

#include <string>

#include "core/json_text.h"  // IWYU pragma: export
#include "core/metric_values.h"

namespace rondo {

/// A logged value; a tensor becomes null.
std::string json_value(const MetricValue& value);

/// `"val/accuracy": 0.98, "val/loss": 0.07`: the members of an object.
std::string json_members(const Metrics& metrics);

}  // namespace rondo
