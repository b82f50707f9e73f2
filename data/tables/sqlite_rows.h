#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "data/tables/text_rows.h"

namespace rondo {

/// What a query of an SQLite database gives; row k is line k. The database is opened for reading
/// alone, and its own schema is not trusted to call functions.
/// \param most  bytes that the rows may have
/// \throws UsageError  naming package and CMake option, when rondo was built without the library
/// \throws DataError   naming the file, with the library's reason: a damaged database, a statement
///                     that is wrong or writes, a cell of bytes
TextRows read_sqlite(const std::filesystem::path& path, const std::string& query, uint64_t most);

}  // namespace rondo
