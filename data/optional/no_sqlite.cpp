#include "core/error.h"
#include "data/tables/sqlite_rows.h"

namespace rondo {

TextRows read_sqlite(const std::filesystem::path& path, const std::string&, uint64_t) {
  throw UsageError(
      path.string() +
      ": this rondo was built without SQLite: install libsqlite3-dev and build it with "
      "-DRONDO_WITH_SQLITE=ON");
}

}  // namespace rondo
