#include "core/json.h"

#include <fmt/format.h>

namespace rondo {

namespace {

struct JsonOf {
  std::string operator()(double value) const { return json_number(value); }

  std::string operator()(int64_t value) const { return std::to_string(value); }

  std::string operator()(const std::string& value) const { return json_string(value); }

  std::string operator()(const at::Tensor&) const { return "null"; }
};

}  // namespace

std::string json_value(const MetricValue& value) {
  return std::visit(JsonOf{}, value);
}

std::string json_members(const Metrics& metrics) {
  std::string text;
  for (const Metrics::Item& item : metrics.items()) {
    text += fmt::format(
        "{}{}: {}", text.empty() ? "" : ", ", json_string(item.first), json_value(item.second));
  }
  return text;
}

}  // namespace rondo
