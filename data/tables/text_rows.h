#pragma once

#include <string>
#include <vector>

namespace rondo {

/// A table from a file that is no plain text, as text: a line a row, cells between commas, texts in
/// quotes, missing cells empty.
struct TextRows {
  std::vector<std::string> names;
  std::string rows;  ///< without a line of names
};

/// A text as a cell. Line ends become blanks, so that a row is a line.
std::string quoted_cell(const std::string& text);

}  // namespace rondo
