#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "data/tables/text_rows.h"

namespace rondo {

/// Whether a text begins as such a file.
bool is_json_lines(std::string_view text);

/// Objects of JSON, one a line, as rows in the same lines. The columns are the keys in the order in
/// which they come first; one that a line lacks is an empty cell.
/// \param file  for messages
/// \param most  bytes that the rows may have
/// \throws DataError  naming file and line: no object, a key twice, a list or an object as a value
TextRows read_json_lines(const std::string& file, std::string_view text, uint64_t most);

}  // namespace rondo
