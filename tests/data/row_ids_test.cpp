#include "data/tables/row_ids.h"

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "data/data_files.h"
#include "data/tables/csv_table.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// Whether a column of 40 such numbers is warned of.
bool is_warned_of(const std::string& name, const std::function<int(int)>& number) {
  const TempDir dir;
  std::string text = name + ",label\n";
  for (int i = 0; i < 40; ++i) {
    text += std::to_string(number(i)) + ",0\n";
  }
  write_file(dir / "t.csv", text);
  CsvTable::Options options{"t.csv"};
  options.data_dir = dir.path();
  const auto warnings = CsvTable(options).notes().warnings;
  return !warnings.empty() && contains(warnings.front(), "id_column = \"" + name + "\"");
}

}  // namespace

TEST_SUITE_BEGIN("data/row_ids");

TEST_CASE("numbers without a gap are warned of in any order, except along a time axis") {
  CHECK(is_warned_of("n", [](int i) { return i; }));
  CHECK(is_warned_of("n", [](int i) { return i + 1; }));
  CHECK(is_warned_of("n", [](int i) { return 7 * i % 40; }));
  CHECK(is_warned_of("n", [](int i) { return 500 + 7 * i % 40; }));
  CHECK(!is_warned_of("n", [](int i) { return 1950 + i; }));
  CHECK(!is_warned_of("n", [](int i) { return i * i; }));
  CHECK(!is_warned_of("n", [](int i) { return i / 2; }));
}

TEST_CASE("different numbers are warned of where the name is that of ids") {
  for (const char* name : {"id", "ID", "user_id", "PassengerId", "customerID", "index"}) {
    CAPTURE(std::string(name));
    CHECK(is_warned_of(name, [](int i) { return 1000 + 3 * i; }));
    CHECK(!is_warned_of(name, [](int i) { return 3 * (i / 2); }));
  }
  for (const char* name : {"paid", "PAID", "valid", "x"}) {
    CAPTURE(std::string(name));
    CHECK(!is_warned_of(name, [](int i) { return 1000 + 3 * i; }));
  }
}

TEST_SUITE_END();
