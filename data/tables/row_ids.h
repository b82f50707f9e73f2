#pragma once

#include <string>
#include <vector>

#include "data/tables/table.h"

namespace rondo {

/// Columns that look like numbers or names of rows, with what to do: they teach a model nothing.
std::vector<std::string> warn_of_ids(const Table& table, const std::vector<size_t>& features);

}  // namespace rondo
