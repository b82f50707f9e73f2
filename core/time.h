#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rondo {

/// What a Time counts. Suffixes in strings: ba, dur, ep, sp, tok, sec.
enum class TimeUnit { Update, Fraction, Epoch, Sample, Token, Second };

/// An amount of training: `250` updates, `0.25` of the run, "3ep", "500ba", "10000sp", "2e6tok",
/// "0.5dur", "1h30m", "5400sec". Immutable. Comparing or adding different units is a UsageError.
/// Source: Composer's Time; a batch ("ba") counts optimizer updates here.
class Time {
 public:
  /// The largest amount; all counts are exact up to it.
  static constexpr int64_t kMost = int64_t{1} << 53;

  Time(int updates) : Time(static_cast<int64_t>(updates)) {}  // NOLINT(google-explicit-constructor)

  Time(int64_t updates);  // NOLINT(google-explicit-constructor)
  Time(double of_run);    // NOLINT(google-explicit-constructor)

  Time(const char* text) : Time(std::string_view(text)) {}  // NOLINT(google-explicit-constructor)

  Time(const std::string& text) : Time(std::string_view(text)) {}  // NOLINT

  /// \throws UsageError  when `text` is not a time, naming the valid forms
  explicit Time(std::string_view text);

  static Time in(TimeUnit unit, int64_t count);

  TimeUnit unit() const { return unit_; }

  /// Whole units; not for Fraction (UsageError).
  int64_t count() const;

  /// The amount in `unit()`, for any unit.
  double value() const { return value_; }

  bool is_zero() const { return value_ == 0.0; }

  /// Value then suffix, such as "5ep" or "0.5dur"; `Time(t.to_string()) == t`.
  std::string to_string() const;

  bool operator==(const Time& other) const;

  bool operator!=(const Time& other) const { return !(*this == other); }

  bool operator<(const Time& other) const;

  bool operator>=(const Time& other) const { return !(*this < other); }

  Time operator+(const Time& other) const;
  Time operator-(const Time& other) const;

  /// Keeps the unit; truncates toward zero for whole units.
  Time operator*(double factor) const;

  /// The ratio of two amounts of one unit.
  double operator/(const Time& other) const;

 private:
  Time(TimeUnit unit, double value) : unit_(unit), value_(value) {}

  TimeUnit unit_ = TimeUnit::Update;
  double value_ = 0.0;  // exact for counts below 2^53
};

/// How long a run is, as far as it is known before it starts.
struct RunLength {
  std::optional<Time> total;  ///< updates if they are known, else samples, tokens or seconds
  std::optional<int64_t> updates_per_epoch;
};

/// `time` in a unit that the run counts, at most Time::kMost: a fraction becomes its share of the
/// total, rounded up, and epochs become updates if a pass has a known number of them. Other times
/// stay.
/// \throws UsageError  for a fraction of a run of unknown total
Time counted(const Time& time, const RunLength& run);

}  // namespace rondo
