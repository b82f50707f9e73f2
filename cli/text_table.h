#pragma once

#include <string>
#include <vector>

namespace rondo {

/// Rows in columns that are as wide as their widest cell; the first row is the heading. Columns
/// whose cells are all numbers stand to the right.
std::string text_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace rondo
