#pragma once

#include <optional>
#include <string>
#include <vector>

namespace rondo {

/// Rows in columns that are as wide as their widest cell; the first row is the heading. Columns
/// whose cells are all numbers stand to the right. Control characters become "?".
/// \param most  characters of a line, if there is a limit: longer ones end with "…"
std::string text_table(std::vector<std::vector<std::string>> rows, std::optional<int> most = {});

/// The same for standard output: lines are cut where a terminal ends.
std::string text_table_for_stdout(std::vector<std::vector<std::string>> rows);

}  // namespace rondo
