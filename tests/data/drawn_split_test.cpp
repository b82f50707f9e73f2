#include "data/splits/drawn_split.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "core/state_dict.h"
#include "data/data_files.h"
#include "data/derived/combined.h"
#include "data/tables/csv_table.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

namespace {

std::string rows_text(int count) {
  std::string text = "a,when,label\n";
  for (int i = 0; i < count; ++i) {
    text +=
        std::to_string(i * 7 % 13) + "," + std::to_string(i) + "," + std::to_string(i % 2) + "\n";
  }
  return text;
}

CsvTable::Options split_table(const TempDir& dir, const std::string& text, const char* name) {
  write_file(dir / name, text);
  CsvTable::Options options{name};
  options.data_dir = dir.path();
  options.split.part = "train";
  options.split.val = 0.2;
  return options;
}

}  // namespace

TEST_SUITE_BEGIN("data/drawn_split");

TEST_CASE("a file that has changed since it was split is refused with both numbers of rows") {
  const TempDir dir;
  auto options = split_table(dir, rows_text(40), "t.csv");
  const StateDict fitted = CsvTable(options).fitted();
  options.split.part = "val";
  CsvTable same(options);
  CHECK_NOTHROW(same.take_fitted(fitted));
  write_file(dir / "t.csv", rows_text(41));
  for (const char* part : {"train", "val"}) {
    options.split.part = part;
    CsvTable longer(options);
    CHECK_THROWS_AS(longer.take_fitted(fitted), DataError);
    const std::string message = message_of([&] { longer.take_fitted(fitted); });
    for (const char* fact : {"t.csv", "40", "41", "train again"}) {
      CHECK_MESSAGE(contains(message, fact), message);
    }
  }
  StateDict older = fitted;
  REQUIRE(older.erase(kSplits));
  CsvTable longer(options);
  CHECK_NOTHROW(longer.take_fitted(older));
}

TEST_CASE("rows that sort in another way are refused, though there are as many") {
  const TempDir dir;
  auto options = split_table(dir, rows_text(40), "t.csv");
  options.split.by = "time:when";
  const StateDict fitted = CsvTable(options).fitted();
  std::string text = rows_text(40);
  text.replace(text.rfind(",39,"), 4, ",-1,");
  write_file(dir / "t.csv", text);
  CsvTable other(options);
  CHECK(contains(message_of([&] { other.take_fitted(fitted); }), "\"when\""));
}

TEST_CASE("a split with other options is refused, and a file that is not split is read") {
  const TempDir dir;
  auto options = split_table(dir, rows_text(40), "t.csv");
  const StateDict fitted = CsvTable(options).fitted();
  const auto refused = [&](const char* fact, const StateDict& learnt, auto change) {
    auto other = options;
    other.split.part = "val";
    change(other.split);
    CsvTable data(other);
    CHECK_THROWS_AS(data.take_fitted(learnt), ConfigError);
    CHECK(contains(message_of([&] { data.take_fitted(learnt); }), fact));
  };
  refused("seed = 3", fitted, [](auto& split) { split.seed = 3; });
  refused("test = 0.1", fitted, [](auto& split) { split.test = 0.1; });
  refused("fold:1/5", fitted, [](auto& split) { split.by = "fold:1/5"; });
  auto whole = options;
  whole.split = {};
  const StateDict unsplit = CsvTable(whole).fitted();
  refused("not split", unsplit, [](auto&) {});
  CsvTable all(whole);
  CHECK_NOTHROW(all.take_fitted(fitted));
  CHECK(all.size() == 40);
}

TEST_CASE("each part of several tables has a split of its own") {
  const TempDir dir;
  const auto tables = [&](const char* part) {
    auto first = split_table(dir, rows_text(40), "a.csv");
    auto second = split_table(dir, rows_text(25), "b.csv");
    first.split.part = part;
    second.split.part = part;
    return Concat::Options{{use<CsvTable>(first), use<CsvTable>(second)}};
  };
  const StateDict fitted = Concat(tables("train")).fitted();
  CHECK(fitted.at(kSplits).as_list().size() == 2);
  Concat val(tables("val"));
  val.take_fitted(fitted);
  CHECK(val.size() == 13);
  CHECK(first_difference(val.fitted(), fitted).empty());
  auto options = split_table(dir, rows_text(26), "b.csv");
  CsvTable longer(options);
  CHECK_THROWS_AS(longer.take_fitted(fitted), DataError);
}

TEST_SUITE_END();
