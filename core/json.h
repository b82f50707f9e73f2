#pragma once

#include <string>
#include <string_view>

#include "core/metric_values.h"

namespace rondo {

/// `text` in quotes, with what JSON does not allow escaped. Bytes beyond ASCII are kept: UTF-8.
std::string json_string(std::string_view text);

/// A number that reads back to the same bits; null when it is not finite.
std::string json_number(double number);

/// A logged value; a tensor becomes null.
std::string json_value(const MetricValue& value);

/// `"val/accuracy": 0.98, "val/loss": 0.07`: the members of an object.
std::string json_members(const Metrics& metrics);

}  // namespace rondo
