#include "data/tables/cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

namespace rondo {

namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// A number of at most fifteen digits without an exponent, which most are: a whole number and a
/// power of ten that a double has, so that their quotient is rounded once. Nothing for others.
/// Source: Clinger 1990, "How to Read Floating Point Numbers Accurately"
std::optional<double> parse_short(std::string_view cell) {
  constexpr std::ptrdiff_t kMostDigits = 15;
  constexpr std::array<double, kMostDigits + 1> kPowers = {
      1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  const char* at = cell.data();
  const char* const end = at + cell.size();
  const bool is_negative = at != end && *at == '-';
  at += is_negative ? 1 : 0;
  const char* const first = at;
  int64_t digits = 0;
  const auto take_digits = [&] {
    for (; at != end && is_digit(*at); ++at) {
      digits = 10 * digits + (*at - '0');
    }
  };
  if (end - first > kMostDigits + 1) {
    return std::nullopt;
  }
  take_digits();
  std::ptrdiff_t decimals = 0;
  if (at != end && *at == '.' && at != first) {
    const char* const point = at++;
    take_digits();
    decimals = at - point - 1;
  }
  if (at != end || at == first || at - first > kMostDigits) {
    return std::nullopt;
  }
  const double value = static_cast<double>(digits) / kPowers[static_cast<size_t>(decimals)];
  return is_negative ? -value : value;
}

/// A number with a decimal point and no groups.
std::optional<double> parse_plain(std::string_view cell) {
  if (const auto number = parse_short(cell)) {
    return number;
  }
  const char* begin = cell.data() + (!cell.empty() && cell.front() == '+' ? 1 : 0);
  const char* const end = cell.data() + cell.size();
  double value = 0.0;
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (stop != end) {
    return std::nullopt;
  }
  if (error == std::errc::result_out_of_range) {
    const size_t exponent = cell.find_first_of("eE");
    const bool is_tiny = exponent != std::string_view::npos && exponent + 1 < cell.size() &&
                         cell[exponent + 1] == '-';
    return is_tiny ? std::optional<double>(0.0) : std::nullopt;
  }
  return error == std::errc() && std::isfinite(value) ? std::optional<double>(value) : std::nullopt;
}

/// Digits in groups of three, the first of one to three.
bool are_groups(std::string_view whole, char thousands) {
  size_t group = 0;
  size_t groups = 0;
  for (const char c : whole) {
    if (c == thousands) {
      if (group == 0 || group > 3 || (groups > 0 && group != 3)) {
        return false;
      }
      ++groups;
      group = 0;
    } else if (is_digit(c)) {
      ++group;
    } else {
      return false;
    }
  }
  return groups == 0 || group == 3;
}

/// The number of `digits` digits at `at`, which moves behind them.
std::optional<int64_t> take_number(std::string_view text, size_t& at, size_t least, size_t most) {
  int64_t value = 0;
  size_t digits = 0;
  while (at < text.size() && digits < most && is_digit(text[at])) {
    value = 10 * value + (text[at] - '0');
    ++at;
    ++digits;
  }
  return digits >= least ? std::optional<int64_t>(value) : std::nullopt;
}

bool take(std::string_view text, size_t& at, std::string_view any) {
  const bool is_there = at < text.size() && any.find(text[at]) != std::string_view::npos;
  at += is_there ? 1 : 0;
  return is_there;
}

bool is_leap(int64_t year) {
  return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

int64_t days_of_month(int64_t year, int64_t month) {
  constexpr std::array<int64_t, 12> kDays = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return kDays[static_cast<size_t>(month - 1)] + (month == 2 && is_leap(year) ? 1 : 0);
}

/// Days since 1970-01-01. Source: Hinnant, "chrono-compatible low-level date algorithms".
int64_t days_since_1970(int64_t year, int64_t month, int64_t day) {
  year -= month <= 2 ? 1 : 0;
  const int64_t era = (year >= 0 ? year : year - 399) / 400;
  const int64_t year_of_era = year - era * 400;
  const int64_t day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
  const int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * 146097 + day_of_era - 719468;
}

/// The calendar date at the begin of `cell`; `at` moves behind it.
std::optional<TableDate> take_date(std::string_view cell, std::string_view order, size_t& at) {
  std::array<int64_t, 3> found{};  // year, month, day
  bool has_separators = true;
  for (size_t i = 0; i < order.size(); ++i) {
    const bool is_year = order[i] == 'y';
    if (i > 0 && has_separators && !take(cell, at, "-/.")) {
      if (i > 1 || order != "ymd") {
        return std::nullopt;
      }
      has_separators = false;  // 20240229
    }
    const auto part =
        take_number(cell, at, is_year ? 4 : (has_separators ? 1 : 2), is_year ? 4 : 2);
    if (!part) {
      return std::nullopt;
    }
    found[is_year ? 0 : (order[i] == 'm' ? 1 : 2)] = *part;
  }
  const auto [year, month, day] = found;
  if (month < 1 || month > 12 || day < 1 || day > days_of_month(year, month)) {
    return std::nullopt;
  }
  const int64_t days = days_since_1970(year, month, day);
  TableDate date;
  date.seconds = static_cast<double>(days) * 86400.0;
  date.year = year;
  date.month = month;
  date.day = day;
  date.weekday = ((days % 7) + 7 + 3) % 7;  // 1970-01-01 was a Thursday
  return date;
}

/// `T13:05`, ` 13:05:10.5`, each with an optional Z, behind the date; nothing but blanks is right.
bool take_time(std::string_view cell, size_t at, TableDate& date) {
  if (at == cell.size()) {
    return true;
  }
  if (!take(cell, at, "T ")) {
    return false;
  }
  const auto hour = take_number(cell, at, 1, 2);
  if (!hour || *hour > 23 || !take(cell, at, ":")) {
    return false;
  }
  const auto minute = take_number(cell, at, 2, 2);
  if (!minute || *minute > 59) {
    return false;
  }
  double seconds = 0.0;
  if (take(cell, at, ":")) {
    const size_t begin = at;
    while (at < cell.size() && (is_digit(cell[at]) || cell[at] == '.')) {
      ++at;
    }
    const auto parsed = parse_plain(cell.substr(begin, at - begin));
    if (!parsed || *parsed < 0.0 || *parsed >= 61.0) {
      return false;
    }
    seconds = *parsed;
  }
  take(cell, at, "Z");
  date.hour = *hour;
  date.seconds += static_cast<double>(*hour * 3600 + *minute * 60) + seconds;
  return at == cell.size();
}

}  // namespace

std::optional<double> parse_number(std::string_view cell, const NumberFormat& format) {
  if (format.decimal == '.' && format.thousands == '\0') {
    return parse_plain(cell);
  }
  constexpr size_t kMost = 64;
  if (cell.empty() || cell.size() > kMost) {
    return std::nullopt;
  }
  const size_t sign = cell.front() == '-' || cell.front() == '+' ? 1 : 0;
  const std::string_view digits = cell.substr(sign);
  const size_t point = std::min(digits.find(format.decimal), digits.size());
  const std::string_view whole = digits.substr(0, std::min(point, digits.find_first_of("eE")));
  const char foreign = format.decimal == ',' ? '.' : ',';
  if (format.thousands != '\0' && !are_groups(whole, format.thousands)) {
    return std::nullopt;
  }
  std::array<char, kMost> plain{};
  size_t size = 0;
  for (size_t i = 0; i < cell.size(); ++i) {
    const char c = cell[i];
    if (c == format.thousands && i < sign + whole.size()) {
      continue;
    }
    if (c == foreign) {
      return std::nullopt;
    }
    plain[size++] = c == format.decimal ? '.' : c;
  }
  return parse_plain({plain.data(), size});
}

std::optional<TableDate> parse_date(std::string_view cell, std::string_view order) {
  size_t at = 0;
  auto date = take_date(cell, order, at);
  return date && take_time(cell, at, *date) ? date : std::nullopt;
}

std::optional<bool> parse_boolean(std::string_view cell) {
  std::string word(cell.substr(0, 6));
  std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  if (word == "true" || word == "yes" || word == "t" || word == "y") {
    return true;
  }
  if (word == "false" || word == "no" || word == "f" || word == "n") {
    return false;
  }
  return std::nullopt;
}

MissingWords::MissingWords(const std::vector<std::string>& words) : words_(words) {
  for (const std::string& word : words_) {
    if (!word.empty()) {
      begins_[static_cast<unsigned char>(word.front())] = true;
    }
  }
}

bool MissingWords::is_listed(std::string_view cell) const {
  return std::find(words_.begin(), words_.end(), cell) != words_.end();
}

std::string latin1_to_utf8(std::string_view text) {
  std::string utf8;
  utf8.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      utf8 += c;
    } else {
      utf8 += static_cast<char>(0xc0 | (byte >> 6));
      utf8 += static_cast<char>(0x80 | (byte & 0x3f));
    }
  }
  return utf8;
}

std::string shown_cell(std::string_view cell) {
  constexpr size_t kMost = 60;
  std::string shown;
  for (const char c : cell.substr(0, kMost)) {
    const bool is_control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    shown +=
        is_control ? fmt::format("\\x{:02x}", static_cast<unsigned char>(c)) : std::string(1, c);
  }
  return cell.size() > kMost ? shown + "…" : shown;
}

}  // namespace rondo
