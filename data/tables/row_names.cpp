#include "data/tables/row_names.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <set>

namespace rondo {

namespace {

/// Names of files without their folders, where these differ.
std::vector<std::string> short_names(const std::vector<Table::File>& files) {
  std::vector<std::string> names;
  std::set<std::string> distinct;
  for (const Table::File& file : files) {
    names.push_back(file.path.filename().string());
    distinct.insert(names.back());
  }
  for (size_t i = 0; i < files.size() && distinct.size() < files.size(); ++i) {
    names[i] = files[i].path.string();
  }
  return names;
}

}  // namespace

std::string RowNames::of(int64_t sample) const {
  if (!ids.empty()) {
    return ids[static_cast<size_t>(sample)];
  }
  const int64_t row = rows.data_ptr<int64_t>()[sample];
  if (files.empty()) {
    return std::to_string(row);
  }
  const auto after = std::upper_bound(first_rows.begin(), first_rows.end(), row);
  const auto file = static_cast<size_t>(after - first_rows.begin()) - 1;
  return files[file] + ":" + std::to_string(row - first_rows[file]);
}

RowNames row_names(const Table& table,
                   const std::vector<size_t>& rows,
                   const std::optional<size_t>& id_column) {
  RowNames names;
  names.rows = at::empty({static_cast<int64_t>(rows.size())}, at::kLong);
  std::copy(rows.begin(), rows.end(), names.rows.data_ptr<int64_t>());
  for (size_t i = 0; id_column && i < rows.size(); ++i) {
    const TableColumn& ids = table.columns[*id_column];
    const int32_t code = ids.codes[rows[i]];
    names.ids.push_back(code < 0 ? "" : ids.words[static_cast<size_t>(code)]);
  }
  if (table.files().size() > 1) {
    names.files = short_names(table.files());
    for (const Table::File& file : table.files()) {
      names.first_rows.push_back(static_cast<int64_t>(file.first_row));
    }
  }
  return names;
}

}  // namespace rondo
