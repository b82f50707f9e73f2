#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "callbacks/builtin/internal/alert_rule.h"
#include "core/error.h"

namespace rondo::detail {

namespace {

struct Comparison {
  const char* sign;
  AlertRule::Kind kind;
};

// Longer signs first.
constexpr Comparison kComparisons[] = {{">=", AlertRule::Kind::AtLeast},
                                       {"<=", AlertRule::Kind::AtMost},
                                       {">", AlertRule::Kind::Above},
                                       {"<", AlertRule::Kind::Below}};

[[noreturn]] void fail(const std::string& text) {
  throw UsageError(fmt::format(
      "Alert.when: expected \"> 3.0\" (or <, >=, <=), \"not finite\" or \"no improvement for 5\", "
      "got \"{}\"",
      text));
}

/// A finite number that is the whole of `text`.
double number_in(const std::string& text, const std::string& whole) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const bool is_all =
      end != text.c_str() && std::string(end).find_first_not_of(' ') == std::string::npos;
  if (!is_all || !std::isfinite(number)) {
    fail(whole);
  }
  return number;
}

}  // namespace

bool AlertRule::holds(double value) const {
  switch (kind) {
    case Kind::Above:
      return value > bound;
    case Kind::AtLeast:
      return value >= bound;
    case Kind::Below:
      return value < bound;
    case Kind::AtMost:
      return value <= bound;
    case Kind::NotFinite:
      return !std::isfinite(value);
    case Kind::NoImprovement:
      break;
  }
  return false;
}

AlertRule parse_alert_rule(const std::string& text) {
  if (text == "not finite") {
    return {AlertRule::Kind::NotFinite, 0.0, 0};
  }
  const std::string patience = "no improvement for ";
  if (text.rfind(patience, 0) == 0) {
    const double values = number_in(text.substr(patience.size()), text);
    if (values < 1.0 || values > 1e9 || values != std::floor(values)) {
      fail(text);
    }
    return {AlertRule::Kind::NoImprovement, 0.0, static_cast<int64_t>(values)};
  }
  for (const Comparison& comparison : kComparisons) {
    const std::string sign = comparison.sign;
    if (text.rfind(sign, 0) == 0) {
      return {comparison.kind, number_in(text.substr(sign.size()), text), 0};
    }
  }
  fail(text);
}

}  // namespace rondo::detail
