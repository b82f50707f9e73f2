#include "data/tables/json_lines.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <string>

#include "core/error.h"
#include "data/data_files.h"
#include "data/tables/csv_table.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

namespace {

constexpr uint64_t kMost = 1 << 20;

std::string line_error(const std::string& text) {
  return message_of([&] { read_json_lines("a.jsonl", text, kMost); });
}

}  // namespace

TEST_SUITE_BEGIN("data/json_lines");

TEST_CASE("objects become rows in their lines, and keys the columns") {
  const TextRows lines = read_json_lines("a.jsonl",
                                         "{\"a\": 1, \"b\": \"x, \\\"y\\\"\\nz\"}\n"
                                         "\n"
                                         " { \"b\" : null , \"c\" : true , \"a\" : -2.5e3 } \r\n"
                                         "{}",
                                         kMost);
  CHECK(lines.names == std::vector<std::string>{"a", "b", "c"});
  CHECK(lines.rows == "1,\"x, \"\"y\"\" z\",\n\n-2.5e3,,true\n,,\n");
  CHECK(is_json_lines("\n {\"a\": 1}"));
  CHECK_FALSE(is_json_lines("a,b\n1,2\n"));
}

TEST_CASE("what is no such object is an error with file and line") {
  CHECK(contains(line_error("{\"a\": 1}\n[1]"), "a.jsonl:2:1: expected \"{\""));
  CHECK(contains(line_error("{\"a\": [1]}"), "a.jsonl:1:7: expected a text, a number"));
  CHECK(contains(line_error("{\"a\": 1, \"a\": 2}"), "the key \"a\" once"));
  CHECK(contains(line_error("{\"a\": 1"), "expected \"}\""));
  CHECK(contains(line_error("{\"a\": 1} 2"), "nothing after the object"));
  CHECK(contains(line_error("{\"a\": \"b}"), "a text that ends"));
  CHECK(contains(message_of([] { read_json_lines("a", "{\"a\": 12345678}\n", 4); }),
                 "max_unpacked_bytes"));
}

TEST_CASE(
    "keys that differ from line to line are refused before they take the square of the file") {
  std::string text;
  for (int i = 0; i < 2000; ++i) {
    text += "{\"" + std::to_string(i) + "\": 1}\n";
  }
  CHECK(contains(message_of([&] { read_json_lines("a", text, uint64_t{1} << 40); }), "same keys"));
}

TEST_CASE("a file that is cut anywhere, or has any byte changed, is read or refused") {
  const std::string good = "{\"a\": 1, \"b\": \"\\u00e4\\\"\"}\n{\"c\": false, \"a\": null}\n";
  const auto read_or_refuse = [](const std::string& text) {
    try {
      read_json_lines("a", text, kMost);
    } catch (const DataError&) {
    }
  };
  for (size_t size = 0; size < good.size(); ++size) {
    read_or_refuse(good.substr(0, size));
  }
  for (size_t at = 0; at < good.size(); ++at) {
    for (const char other : {'\0', '\xff', '"', '\\', '{', ',', 'u'}) {
      std::string text = good;
      text[at] = other;
      read_or_refuse(text);
    }
  }
}

TEST_CASE("such a file is a table: words, numbers and classes") {
  const TempDir dir;
  write_file(dir / "a.jsonl",
             "{\"size\": 1.5, \"kind\": \"red\", \"label\": 0}\n"
             "{\"size\": 2.5, \"kind\": \"blue\", \"label\": 1}\n"
             "{\"label\": 1, \"kind\": \"red\", \"size\": 3.5}\n");
  CsvTable::Options options;
  options.file = (dir / "a.jsonl").string();
  options.scale = "none";
  const CsvTable data(options);
  CHECK(data.size() == 3);
  CHECK(data.facts().feature_names == std::vector<std::string>{"size"});
  CHECK(data.facts().category_names == std::vector<std::string>{"kind"});
  CHECK(data.get(2)["features"].item<float>() == 3.5F);
  CHECK(data.get(2)["label"].item<int64_t>() == 1);
  write_file(dir / "a.jsonl",
             "{\"size\": 1.5, \"label\": 0}\n{\"size\": \"wide\", \"label\": 1}\n");
  CHECK(contains(message_of([&] { CsvTable{options}; }), "a.jsonl:2:"));
}

TEST_SUITE_END();
