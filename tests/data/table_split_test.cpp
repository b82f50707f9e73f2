#include "data/splits/table_split.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "core/error.h"

using namespace rondo;

TEST_SUITE_BEGIN("data/table_split");

namespace {

TableSplit split_by(const std::string& by, double val = 0.2, double test = 0.0) {
  TableSplit split;
  split.part = "train";
  split.by = by;
  split.val = val;
  split.test = test;
  return split;
}

int64_t count(const std::vector<TablePart>& parts, TablePart part) {
  return std::count(parts.begin(), parts.end(), part);
}

}  // namespace

TEST_CASE("random parts have their shares, and depend on the seed alone") {
  TableSplit split = split_by("random", 0.2, 0.1);
  const auto parts = split_rows(split, 150, {});
  CHECK(count(parts, TablePart::Val) == 30);
  CHECK(count(parts, TablePart::Test) == 15);
  CHECK((split_rows(split, 150, {}) == parts));
  split.seed = 1;
  CHECK((split_rows(split, 150, {}) != parts));
}

TEST_CASE("stratified parts have each class's share of sorted rows") {
  std::vector<double> classes(150);
  for (size_t i = 0; i < classes.size(); ++i) {
    classes[i] = std::floor(static_cast<double>(i) / 50.0);
  }
  const auto parts = split_rows(split_by("stratified"), classes.size(), classes);
  std::map<double, int64_t> val;
  for (size_t i = 0; i < classes.size(); ++i) {
    val[classes[i]] += parts[i] == TablePart::Val ? 1 : 0;
  }
  CHECK(val == std::map<double, int64_t>{{0.0, 10}, {1.0, 10}, {2.0, 10}});
}

TEST_CASE("rows of a group stay together") {
  std::vector<double> groups(100);
  for (size_t i = 0; i < groups.size(); ++i) {
    groups[i] = static_cast<double>(i % 10);
  }
  const auto parts = split_rows(split_by("group:who", 0.2, 0.2), groups.size(), groups);
  for (size_t i = 10; i < groups.size(); ++i) {
    CHECK((parts[i] == parts[i - 10]));
  }
  CHECK(count(parts, TablePart::Val) == 20);
  CHECK(count(parts, TablePart::Test) == 20);
}

TEST_CASE("by time the last rows test, those before them validate") {
  const std::vector<double> times = {5, 1, 4, 2, 3};
  const auto parts = split_rows(split_by("time:when", 0.2, 0.2), times.size(), times);
  using P = TablePart;
  CHECK((parts == std::vector<P>{P::Test, P::Train, P::Val, P::Train, P::Train}));
}

TEST_CASE("every row validates in one fold") {
  std::vector<int64_t> times(103, 0);
  for (int k = 1; k <= 5; ++k) {
    const auto parts = split_rows(split_by("fold:" + std::to_string(k) + "/5"), times.size(), {});
    for (size_t i = 0; i < times.size(); ++i) {
      times[i] += parts[i] == TablePart::Val ? 1 : 0;
    }
  }
  CHECK(times == std::vector<int64_t>(103, 1));
}

TEST_CASE("a split that leaves nothing to train, and an unknown way, are refused") {
  const auto refused = [](const TableSplit& split) {
    CHECK_THROWS_AS(check_split("T", split), UsageError);
  };
  refused(split_by("random", 0.5, 0.5));
  refused(split_by("random", -0.1));
  for (const char* by :
       {"sorted", "group:", "time:", "fold:0/5", "fold:6/5", "fold:1/1", "fold:1/5x"}) {
    CAPTURE(by);
    refused(split_by(by));
  }
  TableSplit split;
  split.part = "validation";
  refused(split);
  CHECK(column_of(split_by("group:the user")) == "the user");
}

TEST_CASE("rows that are split without saying which part is used are refused") {
  for (TableSplit split :
       {split_by("random", 0.2), split_by("random", 0.0, 0.2), split_by("fold:1/5", 0.0)}) {
    CHECK_NOTHROW(check_split("T", split));
    split.part.reset();
    CHECK_THROWS_WITH_AS(
        check_split("T", split), doctest::Contains("split.part must be given"), UsageError);
  }
  CHECK_NOTHROW(check_split("T", TableSplit()));
}

TEST_SUITE_END();
