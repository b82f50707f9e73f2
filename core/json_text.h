#pragma once

#include <string>
#include <string_view>

namespace rondo {

/// `text` in quotes, with what JSON does not allow escaped. UTF-8 is kept; any other byte beyond
/// ASCII becomes U+FFFD.
std::string json_string(std::string_view text);

/// A number that reads back to the same bits; null when it is not finite.
std::string json_number(double number);

/// As `json_number`; one that is not finite is the text "nan", "inf" or "-inf".
std::string json_any_number(double number);

}  // namespace rondo
