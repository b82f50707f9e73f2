#include "data/tables/date_order.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "core/state_dict.h"
#include "data/data_files.h"
#include "data/tables/csv_table.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

namespace {

CsvTable::Options dated_table(const TempDir& dir, const std::vector<std::string>& dates) {
  std::string text = "day,label\n";
  for (size_t i = 0; i < dates.size(); ++i) {
    text += dates[i] + "," + std::to_string(i % 2) + "\n";
  }
  write_file(dir / "t.csv", text);
  CsvTable::Options options{"t.csv"};
  options.data_dir = dir.path();
  return options;
}

float first_number(const CsvTable& data) {
  return data.get(0)["features"][0].item<float>();
}

}  // namespace

TEST_SUITE_BEGIN("data/date_order");

TEST_CASE("the order of dates is found out where one alone fits") {
  const TempDir dir;
  constexpr float kDay = 18320.0F;  // 2020-02-28
  CHECK(first_number(CsvTable(dated_table(dir, {"2020-02-28", "2020-01-02"}))) == kDay);
  CHECK(first_number(CsvTable(dated_table(dir, {"28.02.2020", "01.02.2020"}))) == kDay);
  CHECK(first_number(CsvTable(dated_table(dir, {"02/28/2020", "01/02/2020"}))) == kDay);
  auto options = dated_table(dir, {"28.02.2020", "x"});
  CHECK(CsvTable(options).facts().categories == std::vector<int64_t>{3});
  options.date_columns = {"day"};
  const std::string message = message_of([&] { CsvTable{options}; });
  CHECK(contains(message, "t.csv:3:1:"));
  CHECK(!contains(message, "t.csv:2:1:"));
}

TEST_CASE("dates of which day and month can be either need the key") {
  const TempDir dir;
  auto options = dated_table(dir, {"01.02.2020", "03.04.2020"});
  const std::string message = message_of([&] { CsvTable{options}; });
  for (const char* fact : {"t.csv:2:1:", "\"day\"", "date_order", "01.02.2020"}) {
    CHECK_MESSAGE(contains(message, fact), message);
  }
  options.date_order = "dmy";
  CHECK(first_number(CsvTable(options)) == 18293.0F);
  options.date_order = "mdy";
  CHECK(first_number(CsvTable(options)) == 18263.0F);
  options.date_order = "ymd";
  CHECK(CsvTable(options).facts().categories == std::vector<int64_t>{3});
  options.date_order = "auto";
  options.text_columns = {"day"};
  CHECK(CsvTable(options).facts().categories == std::vector<int64_t>{3});
}

TEST_CASE("the order is learnt: other files need not show it, and a key must not contradict it") {
  const TempDir dir;
  auto trained = dated_table(dir, {"28.02.2020", "01.02.2020"});
  trained.missing = "mean";
  const StateDict fitted = CsvTable(trained).fitted();
  auto options = dated_table(dir, {"28.02.2020", "03.02.2020"});
  CsvTable data(options);
  write_file(dir / "t.csv", "day,label\n01.02.2020,0\n");
  data.take_fitted(fitted);
  CHECK(first_number(data) == 18293.0F);
  options = dated_table(dir, {"02.28.2020"});
  options.date_order = "mdy";
  CsvTable other(options);
  CHECK_THROWS_AS(other.take_fitted(fitted), ConfigError);
}

TEST_CASE("a split by time takes dates in any order") {
  const TempDir dir;
  auto options = dated_table(dir, {"28.02.2020", "01.12.2020", "01.03.2020", "02.03.2020"});
  options.split.by = "time:day";
  options.split.val = 0.25;
  options.split.part = "val";
  CHECK(CsvTable(options).sample_name(0) == "1");
}

TEST_SUITE_END();
