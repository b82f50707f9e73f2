#include "data/tables/record_reader.h"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "core/error.h"
#include "data/data_files.h"
#include "support/campaign.h"

using namespace rondo;
using namespace rondo::test;

TEST_SUITE_BEGIN("data/record_reader");

namespace {

using Records = std::vector<std::vector<std::string>>;

Records read(const std::string& text, const RecordRules& rules) {
  RecordReader reader("t.csv", text, rules);
  Records records;
  std::vector<TableField> fields;
  while (reader.next(fields)) {
    auto& record = records.emplace_back();
    for (const TableField& field : fields) {
      record.emplace_back(field.text);
    }
  }
  return records;
}

/// As RFC 4180 writes it.
std::string in_quotes(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    out += c == '"' ? "\"\"" : std::string(1, c);
  }
  return out + "\"";
}

}  // namespace

TEST_CASE("quotes hold separators, line ends and doubled quotes") {
  const Records records = read("a,\"b,\"\"c\"\"\nd\",\"\"\r\n1,2,3\r\n", {});
  CHECK(records == Records{{"a", "b,\"c\"\nd", ""}, {"1", "2", "3"}});
}

TEST_CASE("blanks around fields, empty lines and comments do not count") {
  const Records records = read("# made by hand\n\n  a ;\t\"b\" ; c\n   \n#1;2\n;;\n", {';', "#"});
  CHECK(records == Records{{"a", "b", "c"}, {"", "", ""}});
}

TEST_CASE("a blank as separator stands for a run of blanks") {
  const Records records = read("  1   2\t3  \r\n4 \"5 6\" 7", {' ', ""});
  CHECK(records == Records{{"1", "2", "3"}, {"4", "5 6", "7"}});
}

TEST_CASE("lines are counted through quotes, skipped lines and jumps") {
  const std::string text = "x\n\"a\nb\",1\nc,2\n";
  RecordReader reader("t.csv", text, {});
  reader.skip_lines(1);
  std::vector<TableField> fields;
  REQUIRE(reader.next(fields));
  CHECK(reader.line() == 2);
  CHECK(reader.last_line() == 3);
  CHECK(fields[1].position == 4);
  REQUIRE(reader.next(fields));
  CHECK(reader.line() == 4);
  const size_t offset = reader.offset();
  RecordReader again("t.csv", text, {});
  again.seek(offset);
  REQUIRE(again.next(fields));
  CHECK(again.line() == 4);
  CHECK(fields[0].text == "c");
}

TEST_CASE("a quote that is not closed, and one within a field, are told with their place") {
  const auto message = [](const std::string& text) { return message_of([&] { read(text, {}); }); };
  CHECK(contains(message("a,b\n1,\"2\n3,4\n"), "t.csv:2:3: "));
  CHECK(contains(message("a,\"b\" c,d\n"), "t.csv:1:5: "));
}

TEST_CASE("a line has no more fields than the limit") {
  const std::string most(RecordReader::kMostFields - 1, ',');
  CHECK(read(most, {}).front().size() == RecordReader::kMostFields);
  CHECK_THROWS_AS(read(most + ",", {}), DataError);
}

TEST_CASE("what is written as RFC 4180 has it is read back") {
  std::mt19937 random(1);
  const std::string letters = "ab,;\" \n\r\t1.5é";
  for (int64_t trial = 0; trial < 300 * campaign_scale(); ++trial) {
    Records written(1 + random() % 4);
    std::string text;
    const size_t width = 1 + random() % 4;
    for (auto& record : written) {
      for (size_t c = 0; c < width; ++c) {
        std::string& field = record.emplace_back();
        for (size_t i = random() % 6; i > 0; --i) {
          field += letters[random() % letters.size()];
        }
        text += (c > 0 ? "," : "") + in_quotes(field);
      }
      text += random() % 2 == 0 ? "\n" : "\r\n";
    }
    CAPTURE(trial);
    CHECK(read(text, {}) == written);
  }
}

TEST_CASE("no bytes make it fail in another way than by a DataError") {
  std::mt19937 random(2);
  const std::string letters = "1,\"\n;\r \t#a";
  for (int64_t trial = 0; trial < 2000 * campaign_scale(); ++trial) {
    std::string text;
    for (size_t i = random() % 40; i > 0; --i) {
      text += letters[random() % letters.size()];
    }
    CAPTURE(text);
    for (const char delimiter : {',', ';', '\t', ' '}) {
      try {
        read(text, {delimiter, "#"});
      } catch (const DataError&) {
      }
    }
  }
}

TEST_SUITE_END();
