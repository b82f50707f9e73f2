#pragma once

#include <string>
#include <vector>

#include "data/tables/table_format.h"
#include "data/tables/table_sample.h"

namespace rondo {

/// Finds out which of the first lines names the columns, if one does. Sets `skip_lines`,
/// `first_line`, `has_header` and `names` of a dialect whose numbers are known, and adds notes.
/// \param file         for messages
/// \param known_names  a line that holds one of them names the columns
/// \throws DataError  when a line can be names or a row
void find_header(const std::string& file,
                 const TableSample& sample,
                 const TableFormat& format,
                 const std::vector<std::string>& known_names,
                 TableDialect& dialect);

}  // namespace rondo
