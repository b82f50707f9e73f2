#include "data/tables/row_names.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "data/data_files.h"
#include "data/tables/csv_table.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

namespace {

std::vector<std::string> names_of(const CsvTable& data) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < data.size(); ++i) {
    names.push_back(data.sample_name(i));
  }
  return names;
}

CsvTable::Options named_table(const TempDir& dir, const std::string& file) {
  CsvTable::Options options{file};
  options.data_dir = dir.path();
  return options;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_SUITE_BEGIN("data/row_names");

TEST_CASE("samples are called by the rows of the file, whatever rows are left out") {
  const TempDir dir;
  write_file(dir / "t.csv", "a,who,label\n1,x,0\n,y,1\n3,z,1\n4,v,1\n5,w,0\n");
  auto options = named_table(dir, "t.csv");
  options.missing = "drop";
  CHECK(names_of(CsvTable(options)) == Names{"0", "2", "3", "4"});
  options.first = 3;
  CHECK(names_of(CsvTable(options)) == Names{"3", "4"});
  options.first = 0;
  options.split.by = "time:a";
  options.split.val = 0.5;
  options.split.part = "val";
  CHECK(names_of(CsvTable(options)) == Names{"3", "4"});
  options.id_column = "who";
  CHECK(names_of(CsvTable(options)) == Names{"v", "w"});
}

TEST_CASE("of several files the name says which one has the row") {
  const TempDir dir;
  write_file(dir / "part1.csv", "a,label\n1,0\n2,1\n");
  write_file(dir / "part2.csv", "a,label\n3,0\n4,1\n");
  auto options = named_table(dir, "part*.csv");
  options.first = 1;
  CHECK(names_of(CsvTable(options)) == Names{"part1.csv:1", "part2.csv:0", "part2.csv:1"});
  options.cache = (dir / "cache").string();
  CHECK(names_of(CsvTable(options)) == names_of(CsvTable(options)));
}

TEST_SUITE_END();
