#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace rondo::test {

/// A line of a version's table.
struct TableRow {
  std::string family;
  std::string name;
  std::string way;
  std::string reason;
};

using Table = std::vector<TableRow>;

/// Tab-separated, with a line of column names.
std::string to_tsv(const Table& table);

/// \throws std::runtime_error  when a line has not four columns
Table read_tsv(const std::filesystem::path& path);

/// The page made of the tables of all versions in a folder, `<version>.tsv` each.
std::string coverage_page(const std::filesystem::path& folder);

/// Where two tables differ, a line each; "" when they are equal.
std::string differences(const Table& expected, const Table& got);

}  // namespace rondo::test
