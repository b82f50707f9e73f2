#include "data/tables/csv_table.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include "core/error.h"
#include "core/state_dict.h"
#include "data/data_files.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

namespace {

CsvTable::Options table_over(const TempDir& dir, std::string_view text) {
  write_file(dir / "t.csv", text);
  CsvTable::Options options{"t.csv"};
  options.data_dir = dir.path();
  return options;
}

}  // namespace

TEST_SUITE_BEGIN("data/csv_table");

TEST_CASE("the label column is a class, the others are features in their order") {
  const TempDir dir;
  const CsvTable data(table_over(dir, "a,label,b\n1,0,2.5\n-3e2,4,+0.125\n0,1,1e-60\n"));
  CHECK(data.size() == 3);
  CHECK(data.get(2)["features"][1].item<float>() == 0.0F);
  CHECK(data.feature_names() == std::vector<std::string>{"a", "b"});
  const Batch batch = data.get_batch({1, 0});
  CHECK(equal_bytes(batch["features"], torch::tensor({{-300.0F, 0.125F}, {1.0F, 2.5F}})));
  CHECK(equal_bytes(batch["label"], torch::tensor({4, 0}, at::kLong)));
  CHECK(data.get(0)["label"].dim() == 0);
}

TEST_CASE("columns can be chosen, and a label can be any number") {
  const TempDir dir;
  auto options = table_over(dir, "a,b,price\n1,2,-0.5\n");
  options.label_column = "price";
  options.label_type = "value";
  options.feature_columns = {"b"};
  const Sample sample = CsvTable(options).get(0);
  CHECK(equal_bytes(sample["features"], torch::tensor({2.0F})));
  CHECK(equal_bytes(sample["label"], torch::full({}, -0.5F)));
}

TEST_CASE(
    "quotes, blanks, carriage returns, empty lines, a byte order mark and gzip are understood") {
  const TempDir dir;
  auto options = table_over(dir, "");
  write_gzip(dir / "t.csv", "\xef\xbb\xbf\"a, b\" ; \"label\"\r\n\r\n 1.5 ; \"2\"\r\n   \r\n7;8");
  options.delimiter = ";";
  const CsvTable data(options);
  CHECK(data.feature_names() == std::vector<std::string>{"a, b"});
  CHECK(equal_bytes(data.get_batch({0, 1})["features"], torch::tensor({{1.5F}, {7.0F}})));
  options = table_over(dir, "\"x,y\",label\n1,2\n");
  CHECK(CsvTable(options).feature_names().front() == "x,y");
  options = table_over(dir, "a\tlabel\n1\t2\n");
  options.delimiter = "\t";
  CHECK(CsvTable(options).get(0)["label"].item<int64_t>() == 2);
}

TEST_CASE("a range of the rows is taken") {
  const TempDir dir;
  auto options = table_over(dir, "a,label\n1,0\n2,1\n3,2\n");
  options.first = 1;
  CHECK(CsvTable(options).get(0)["label"].item<int64_t>() == 1);
  options.count = 1;
  CHECK(CsvTable(options).size() == 1);
  options.count = 3;
  CHECK_THROWS_AS(CsvTable{options}, UsageError);
}

TEST_CASE("what is wrong with a table is told with file, line and column") {
  struct Case {
    const char* text;
    const char* place;
    const char* fact;
  };

  const TempDir dir;
  const std::vector<Case> cases = {
      {"a,label\n1,0\n2,x\n", ":3:3:", "\"x\""},
      {"a,label\n1, -1\n", ":2:4:", "\"label\""},
      {"a,label\n1,1.5\n", ":2:3:", "\"1.5\""},
      {"a,label\n,1\n", ":2:1:", "\"a\""},
      {"a,label\n1e999,1\n", ":2:1:", "1e999"},
      {"a,label\n1e39,1\n", ":2:1:", "1e39"},
      {"a,label\nnan,1\n", ":2:1:", "nan"},
      {"a,label\n12cm,1\n", ":2:1:", "12cm"},
      {"a,label\n\n1\n", ":3:1:", "2 fields"},
      {"a,label\n1,2,3\n", ":2:5:", "2 fields"},
      {"a,label\n\"1,2\n", ":2:1:", "quote"},
      {"a,labels\n1,2\n", ":1:1:", "did you mean \"labels\""},
      {"a,a,label\n1,2,3\n", ":1:3:", "\"a\""},
      {"", "t.csv:", "empty"},
      {"a,label\n", "t.csv:1:", "no rows"},
  };
  for (const Case& wrong : cases) {
    const auto options = table_over(dir, wrong.text);
    CAPTURE(std::string(wrong.text));
    CHECK_THROWS_AS(CsvTable{options}, DataError);
    const std::string message = message_of([&] { CsvTable{options}; });
    CAPTURE(message);
    CHECK(contains(message, "t.csv"));
    CHECK(contains(message, wrong.place));
    CHECK(contains(message, wrong.fact));
  }
}

TEST_CASE("a class that is none of so many is told with its place") {
  const TempDir dir;
  auto options = table_over(dir, "a,label\n1,2\n1,3\n");
  CHECK_NOTHROW(CsvTable{options});
  options.classes = 3;
  const std::string message = message_of([&] { CsvTable{options}; });
  CHECK(contains(message, "t.csv:3:3:"));
  CHECK(contains(message, "below 3"));
}

TEST_CASE("options out of range are refused") {
  const TempDir dir;
  const auto refused = [&](auto change) {
    auto options = table_over(dir, "a,label\n1,2\n");
    change(options);
    CHECK_THROWS_AS(CsvTable{options}, UsageError);
  };
  refused([](auto& o) { o.file = ""; });
  refused([](auto& o) { o.label_type = "text"; });
  refused([](auto& o) { o.delimiter = ",,"; });
  refused([](auto& o) { o.delimiter = ""; });
}

TEST_SUITE_END();
