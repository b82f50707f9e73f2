#include "data/tables/sqlite_rows.h"

#include <doctest/doctest.h>
#include <sqlite3.h>
#include <torch/types.h>

#include <fstream>
#include <iterator>
#include <string>

#include "core/error.h"
#include "data/data_files.h"
#include "data/tables/csv_table.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

namespace {

constexpr uint64_t kMostBytes = 1 << 20;

void make(const std::filesystem::path& path, const std::string& statements) {
  sqlite3* database = nullptr;
  REQUIRE(sqlite3_open(path.c_str(), &database) == SQLITE_OK);
  REQUIRE(sqlite3_exec(database, statements.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(database);
}

const char* const kFlowers =
    "create table flowers (size real, kind text, label integer, blob blob);"
    "insert into flowers values (1.5, 'red', 0, null), (2.5, 'blue \"x\"', 1, null),"
    " (null, 'red', 1, x'00');";

}  // namespace

TEST_SUITE_BEGIN("data/sqlite_rows");

TEST_CASE("rows of a query become a table") {
  const TempDir dir;
  make(dir / "a.sqlite", kFlowers);
  const TextRows rows = read_sqlite(
      dir / "a.sqlite", "select size, kind, label from flowers order by label;", kMostBytes);
  CHECK(rows.names == std::vector<std::string>{"size", "kind", "label"});
  CHECK(rows.rows == "1.5,\"red\",0\n2.5,\"blue \"\"x\"\"\",1\n,\"red\",1\n");
  CsvTable::Options options;
  options.file = (dir / "a.sqlite").string();
  options.query = "select size, kind, label from flowers where size > 0";
  options.scale = "none";
  const CsvTable data(options);
  CHECK(data.size() == 2);
  CHECK(data.get(1)["features"].item<float>() == 2.5F);
  CHECK(data.facts().category_names == std::vector<std::string>{"kind"});
}

TEST_CASE("a statement that is wrong, or does anything but read, is refused") {
  const TempDir dir;
  make(dir / "a.sqlite", kFlowers);
  const auto error = [&](const std::string& query) {
    return message_of([&] { read_sqlite(dir / "a.sqlite", query, kMostBytes); });
  };
  CHECK(contains(error("select * from trees"), "a.sqlite: query: no such table: trees"));
  CHECK(contains(error("drop table flowers"), "select statement"));
  CHECK(contains(error("select 1; drop table flowers"), "there are several"));
  CHECK(contains(error("select blob from flowers"), "row 3: \"blob\" holds bytes"));
  CHECK(contains(message_of([&] { read_sqlite(dir / "a.sqlite", "select 12345", 3); }),
                 "max_unpacked_bytes"));
  write_file(dir / "b.csv", "a,label\n1,0\n");
  CsvTable::Options options;
  options.file = (dir / "b.csv").string();
  options.query = "select 1";
  CHECK(contains(message_of([&] { CsvTable{options}; }), "query needs an SQLite database"));
  options.file = (dir / "a.sqlite").string();
  options.query = "";
  CHECK(contains(message_of([&] { CsvTable{options}; }), "set query"));
}

TEST_CASE("a database that is cut anywhere, or has bytes changed, is read or refused") {
  const TempDir dir;
  make(dir / "a.sqlite", kFlowers);
  std::ifstream in(dir / "a.sqlite", std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const auto read_or_refuse = [&](const std::string& bytes) {
    write_file(dir / "b.sqlite", bytes);
    try {
      read_sqlite(dir / "b.sqlite", "select size, kind, label from flowers", kMostBytes);
    } catch (const DataError&) {
    }
  };
  for (size_t size = 0; size < good.size(); size += 211) {
    read_or_refuse(good.substr(0, size));
  }
  for (size_t at = 0; at < good.size(); at += 7) {
    std::string bytes = good;
    bytes[at] = static_cast<char>(~bytes[at]);
    read_or_refuse(bytes);
  }
}

TEST_SUITE_END();
