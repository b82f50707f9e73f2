#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "data/tables/table.h"

namespace rondo {

/// The order of year, month and day in a column of words that are all dates; nothing for others.
/// \param wanted  "auto", or the order that they must have
/// \throws DataError  naming the place and the key to set, when day and month can be either
std::optional<std::string> date_order_of(const Table& table,
                                         size_t column,
                                         const std::string& wanted);

/// The same for a column that must hold dates: the order of most of its words.
std::string likeliest_date_order(const Table& table, size_t column, const std::string& wanted);

/// Whether a word is a date in any order.
bool is_any_date(std::string_view word);

}  // namespace rondo
