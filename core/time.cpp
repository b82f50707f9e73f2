#include "core/time.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

#include "core/error.h"

namespace rondo {

namespace {

struct UnitName {
  TimeUnit unit;
  const char* suffix;
};

constexpr std::array<UnitName, 6> kUnits = {{{TimeUnit::Update, "ba"},
                                             {TimeUnit::Fraction, "dur"},
                                             {TimeUnit::Epoch, "ep"},
                                             {TimeUnit::Sample, "sp"},
                                             {TimeUnit::Token, "tok"},
                                             {TimeUnit::Second, "sec"}}};

constexpr double kLargestCount = static_cast<double>(Time::kMost);

const char* suffix_of(TimeUnit unit) {
  for (const UnitName& name : kUnits) {
    if (name.unit == unit) {
      return name.suffix;
    }
  }
  return "?";
}

[[noreturn]] void fail(std::string_view text, const std::string& why) {
  throw UsageError(fmt::format(
      "\"{}\" is not a time: {}; write 250, 0.25, \"3ep\", \"500ba\", \"10000sp\", \"2e6tok\", "
      "\"0.5dur\", \"1h30m\" or \"5400sec\"",
      text,
      why));
}

/// Seconds of a wall-clock form such as "1h30m5s": parts are optional, ordered and in range.
std::optional<int64_t> wall_clock_seconds(std::string_view text) {
  struct Part {
    char letter;
    int64_t limit;
    int64_t seconds;
  };

  constexpr std::array<Part, 3> kParts = {{{'h', 24, 3600}, {'m', 60, 60}, {'s', 60, 1}}};
  int64_t total = 0;
  size_t next_part = 0;
  const char* at = text.data();
  const char* const end = at + text.size();
  if (at == end) {
    return std::nullopt;
  }
  while (at != end) {
    int64_t number = 0;
    const auto [rest, error] = std::from_chars(at, end, number);
    if (error != std::errc() || rest == end || number < 0) {
      return std::nullopt;
    }
    while (next_part < kParts.size() && kParts[next_part].letter != *rest) {
      ++next_part;
    }
    if (next_part == kParts.size() || number >= kParts[next_part].limit) {
      return std::nullopt;
    }
    total += number * kParts[next_part].seconds;
    ++next_part;
    at = rest + 1;
  }
  return total;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) {
    return false;
  }
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(a[i])) !=
        std::tolower(static_cast<unsigned char>(b[i]))) {
      return false;
    }
  }
  return true;
}

double checked(TimeUnit unit, double value, std::string_view text) {
  if (!std::isfinite(value) || std::abs(value) > kLargestCount) {
    fail(text, "the number is out of range");
  }
  if (unit != TimeUnit::Fraction && value != std::trunc(value)) {
    fail(text, fmt::format("\"{}\" is counted in whole numbers", suffix_of(unit)));
  }
  return value;
}

/// As a count; the product of two can be more than one holds.
int64_t saturated(double amount) {
  return static_cast<int64_t>(std::clamp(amount, -kLargestCount, kLargestCount));
}

void require_same_unit(const Time& a, const Time& b) {
  if (a.unit() != b.unit()) {
    throw UsageError(
        fmt::format("cannot relate {} to {}: different units", a.to_string(), b.to_string()));
  }
}

}  // namespace

Time::Time(int64_t updates)
    : value_(checked(TimeUnit::Update, static_cast<double>(updates), std::to_string(updates))) {}

Time::Time(double of_run)
    : unit_(TimeUnit::Fraction),
      value_(checked(TimeUnit::Fraction, of_run, std::to_string(of_run))) {}

Time::Time(std::string_view text) {
  if (const auto seconds = wall_clock_seconds(text)) {
    unit_ = TimeUnit::Second;
    value_ = static_cast<double>(*seconds);
    return;
  }
  double number = 0.0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc::result_out_of_range) {
    fail(text, "the number is out of range");
  }
  if (error != std::errc()) {
    fail(text, "it does not begin with a number");
  }
  const std::string_view suffix(rest, static_cast<size_t>(end - rest));
  for (const UnitName& name : kUnits) {
    if (equal_ignoring_case(suffix, name.suffix)) {
      unit_ = name.unit;
      value_ = checked(unit_, number, text);
      return;
    }
  }
  fail(text, suffix.empty() ? "it has no unit" : fmt::format("\"{}\" is not a unit", suffix));
}

Time Time::in(TimeUnit unit, int64_t count) {
  return Time(unit, checked(unit, static_cast<double>(count), std::to_string(count)));
}

int64_t Time::count() const {
  if (unit_ == TimeUnit::Fraction) {
    throw UsageError(fmt::format("{} is a fraction of the run, not a count", to_string()));
  }
  return static_cast<int64_t>(value_);
}

std::string Time::to_string() const {
  return unit_ == TimeUnit::Fraction ? fmt::format("{}dur", value_)
                                     : fmt::format("{}{}", count(), suffix_of(unit_));
}

bool Time::operator==(const Time& other) const {
  require_same_unit(*this, other);
  return value_ == other.value_;
}

bool Time::operator<(const Time& other) const {
  require_same_unit(*this, other);
  return value_ < other.value_;
}

Time Time::operator+(const Time& other) const {
  require_same_unit(*this, other);
  return {unit_, value_ + other.value_};
}

Time Time::operator-(const Time& other) const {
  require_same_unit(*this, other);
  return {unit_, value_ - other.value_};
}

Time Time::operator*(double factor) const {
  const double product = value_ * factor;
  return {unit_, unit_ == TimeUnit::Fraction ? product : std::trunc(product)};
}

double Time::operator/(const Time& other) const {
  require_same_unit(*this, other);
  if (other.is_zero()) {
    throw UsageError(fmt::format("cannot divide {} by zero", to_string()));
  }
  return value_ / other.value_;
}

Time counted(const Time& time, const RunLength& run) {
  if (time.unit() == TimeUnit::Fraction) {
    if (!run.total) {
      throw UsageError(fmt::format(
          "{} needs a run whose length is known before it starts: set loop.max_steps, or "
          "loop.max_duration in updates, samples, tokens or seconds",
          time.to_string()));
    }
    return Time::in(run.total->unit(), saturated(std::ceil(time.value() * run.total->value())));
  }
  if (time.unit() == TimeUnit::Epoch && run.updates_per_epoch) {
    return Time::in(TimeUnit::Update,
                    saturated(time.value() * static_cast<double>(*run.updates_per_epoch)));
  }
  return time;
}

}  // namespace rondo
