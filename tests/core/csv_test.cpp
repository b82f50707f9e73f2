#include "core/csv.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

TEST_SUITE_BEGIN("core/csv");

using namespace rondo;

using Rows = std::vector<std::vector<std::string>>;

TEST_CASE("fields that are written are read again") {
  const std::vector<std::string> fields = {"", "a", "a,b", "say \"x\"", "two\nlines", " c "};
  std::string line;
  for (const std::string& field : fields) {
    line += (line.empty() && &field == &fields[0] ? "" : ",") + csv_field(field);
  }
  CHECK(csv_rows(line + "\n") == Rows{fields});
}

TEST_CASE("rows end at line ends, also of Windows and without a last one; empty lines are none") {
  CHECK(csv_rows("a,b\r\n1,2\r\n") == Rows{{"a", "b"}, {"1", "2"}});
  CHECK(csv_rows("a,b\n\n1,") == Rows{{"a", "b"}, {"1", ""}});
  CHECK(csv_rows("").empty());
  CHECK(csv_rows("\"a") == Rows{{"a"}});
}

TEST_SUITE_END();
