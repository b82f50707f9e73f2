#include "data/tables/table_format.h"

#include <doctest/doctest.h>

#include "core/error.h"
#include "data/data_files.h"

using namespace rondo;
using namespace rondo::test;

TEST_SUITE_BEGIN("data/table_format");

namespace {

TableDialect detect(const std::string& text, const TableFormat& format = {}) {
  return detect_dialect("t.csv", text, format, {});
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("separators are found out, also beside decimal commas and dates") {
  const std::pair<const char*, char> cases[] = {
      {"a,b\n1.5,2\n3,4\n", ','},
      {"a;b\n1,5;2,5\n3,5;4,5\n", ';'},
      {"a\tb\n1\t2\n", '\t'},
      {"a|b\n1|x y\n", '|'},
      {"1   2.5 3\n4 5.5  6\n", ' '},
      {"when,what\n2024-01-02 10:00,1\n2024-01-03 11:00,2\n", ','},
      {"name,n\n\"Smith; John\",1\n\"Miller; A\",2\n", ','},
      {"x\n1\n2\n", ','},
  };
  for (const auto& [text, delimiter] : cases) {
    CAPTURE(text);
    CHECK(detect(text).records.delimiter == delimiter);
  }
}

TEST_CASE("two separators that fit equally well are an error that names the key") {
  const std::string message = message_of([] { detect("a;b|c\nd;e|f\ng;h|i\n"); });
  CHECK(contains(message, "delimiter"));
  CHECK(contains(message, "';'"));
  CHECK(contains(message, "'|'"));
}

TEST_CASE("decimal and thousands separators are found out") {
  const auto numbers = [](const std::string& text) { return detect(text).numbers; };
  CHECK(numbers("a;b\n1,5;2\n1,25;3\n").decimal == ',');
  CHECK(numbers("a,b\n1.5,2\n").decimal == '.');
  CHECK(numbers("a;b\n1.234,5;1\n").thousands == '.');
  CHECK(numbers("a;b\n1,234.5;1\n").thousands == ',');
  CHECK(numbers("a,b\n\"1,234.5\",1\n").thousands == ',');
  CHECK(numbers("a;b\n1,234,567;1\n").thousands == ',');
  CHECK(numbers("a;b\n1.234;1\n").thousands == '\0');
}

TEST_CASE("a comma before three digits can mean two things, and the key is named") {
  const std::string message = message_of([] { detect("a;b\n1,234;2\n5,678;3\n"); });
  CHECK(contains(message, "decimal"));
  CHECK(contains(message, "thousands"));
  TableFormat format;
  format.decimal = ",";
  CHECK(detect("a;b\n1,234;2\n", format).numbers.decimal == ',');
  format = {};
  format.thousands = ",";
  CHECK(detect("a;b\n1,234;2\n", format).numbers.thousands == ',');
}

TEST_CASE("a line of names is told from rows") {
  CHECK(detect("a,b\n1,2\n").names == Names{"a", "b"});
  CHECK(detect("1,2\n3,4\n").names == Names{"column1", "column2"});
  CHECK(detect("x,1\ny,2\n").names == Names{"column1", "column2"});
  CHECK(detect(",a\n1,2\n").names == Names{"column1", "a"});
  CHECK(detect("a,NA\nb,1\n").has_header == false);
}

TEST_CASE("a first line that fits no column is left out, and said") {
  // as the tables of scikit-learn begin
  TableDialect dialect =
      detect("150,4,setosa,versicolor,virginica\n5.1,3.5,1.4,0.2,0\n4.9,3,1,0,1\n");
  CHECK(!dialect.has_header);
  CHECK(dialect.skip_lines == 1);
  CHECK(dialect.names.size() == 5);
  REQUIRE(dialect.notes.size() == 1);
  CHECK(contains(dialect.notes[0], "line 1"));
  CHECK(contains(dialect.notes[0], "setosa"));
  dialect = detect("569,3,malignant\n1,2,3,0\n4,5,6,1\n");
  CHECK(dialect.skip_lines == 1);
  dialect = detect("506,2,,\n\"CRIM\",\"ZN\",\"RM\",\"MEDV\"\n1,2,3,4\n5,6,7,8\n");
  CHECK(dialect.has_header);
  CHECK(dialect.names == Names{"CRIM", "ZN", "RM", "MEDV"});
  CHECK(dialect.first_line == 2);
}

TEST_CASE("a line of names with a field less names the columns after the first") {
  const TableDialect dialect = detect("a,b\nx,1,2\ny,3,4\n");
  CHECK(dialect.names == Names{"row_name", "a", "b"});
}

TEST_CASE("names above text alone can be a row: the key is named, and a known name decides") {
  const std::string text = "a,b\nx,y\nz,w\n";
  CHECK(contains(message_of([&] { detect(text); }), "header"));
  CHECK(detect_dialect("t.csv", text, {}, {"b"}).has_header);
  TableFormat format;
  format.header = "no";
  CHECK(detect(text, format).names == Names{"column1", "column2"});
}

TEST_CASE("lines before the table and comments are left out") {
  TableFormat format;
  format.skip_lines = 2;
  format.comment = "#";
  const TableDialect dialect = detect("made by a machine\n1;2\n# the names\na,b\n1,2\n", format);
  CHECK(dialect.records.delimiter == ',');
  CHECK(dialect.names == Names{"a", "b"});
  CHECK(dialect.first_line == 4);
}

TEST_CASE("the dialect is told in a line") {
  const std::string text = describe(detect("a;b\n1,5;2,5\n"));
  CHECK(contains(text, "';'"));
  CHECK(contains(text, "comma"));
  CHECK(contains(text, "line 1"));
}

TEST_SUITE_END();
