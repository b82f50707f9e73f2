#include "core/error.h"
#include "record/run_database.h"

namespace rondo {

namespace {

[[noreturn]] void fail() {
  throw UsageError(
      "this rondo was built without SQLite: install libsqlite3-dev and build it with "
      "-DRONDO_WITH_SQLITE=ON");
}

}  // namespace

QueryAnswer query_runs(const std::vector<RunRecord>&, const std::string&) {
  fail();
}

void save_runs(const std::vector<RunRecord>&, const std::filesystem::path&) {
  fail();
}

}  // namespace rondo
