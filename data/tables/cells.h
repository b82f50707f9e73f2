#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rondo {

/// How a table writes numbers.
struct NumberFormat {
  char decimal = '.';
  char thousands = '\0';  ///< between groups of three digits; '\0': none
};

/// The number that a cell holds; nothing when it holds something else, or none that a double can.
std::optional<double> parse_number(std::string_view cell, const NumberFormat& format);

/// A moment as seconds since 1970, UTC, and its parts.
struct TableDate {
  double seconds = 0.0;
  int64_t year = 0;
  int64_t month = 0;    ///< 1 … 12
  int64_t day = 0;      ///< 1 … 31
  int64_t weekday = 0;  ///< 0 on Mondays
  int64_t hour = 0;     ///< 0 … 23
};

/// The date of a cell as `order` has it, with an optional time of day: "ymd" reads 2024-02-29,
/// 2024/2/29 and 20240229, "dmy" 29.02.2024 and 29/2/2024, "mdy" 2/29/2024.
std::optional<TableDate> parse_date(std::string_view cell, std::string_view order);

/// True or false as people write it, in any case: true, false, yes, no, t, f, y, n.
std::optional<bool> parse_boolean(std::string_view cell);

/// The cells that stand for nothing; empty ones always do.
class MissingWords {
 public:
  explicit MissingWords(const std::vector<std::string>& words);

  bool contains(std::string_view cell) const {
    return cell.empty() || (begins_[static_cast<unsigned char>(cell.front())] && is_listed(cell));
  }

 private:
  bool is_listed(std::string_view cell) const;

  std::vector<std::string> words_;
  std::array<bool, 256> begins_{};  // whether a word begins with this byte
};

/// Latin-1 as UTF-8.
std::string latin1_to_utf8(std::string_view text);

/// A cell in a message: shortened, without what a terminal would obey.
std::string shown_cell(std::string_view cell);

}  // namespace rondo
