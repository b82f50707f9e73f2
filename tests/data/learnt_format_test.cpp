#include "data/tables/learnt_format.h"

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

CsvTable::Options written(const TempDir& dir, const char* name, const std::string& text) {
  write_file(dir / name, text);
  CsvTable::Options options{name};
  options.data_dir = dir.path();
  return options;
}

/// A file to predict, which has no label.
CsvTable::Options to_predict(const TempDir& dir, const std::string& text) {
  auto options = written(dir, "new.csv", text);
  options.label_column = "";
  return options;
}

/// The first feature of every row, read with what another table learnt.
at::Tensor first_feature(const CsvTable::Options& options, const StateDict& fitted) {
  CsvTable data(options);
  data.take_fitted(fitted);
  std::vector<int64_t> all;
  for (int64_t i = 0; i < data.size(); ++i) {
    all.push_back(i);
  }
  return data.get_batch(all)["features"].select(1, 0).contiguous();
}

}  // namespace

TEST_SUITE_BEGIN("data/learnt_format");

TEST_CASE("a file is read with the numbers of the training data, not with what it looks like") {
  const TempDir dir;
  const CsvTable train(written(dir, "train.csv", "x;label\n1.234,50;0\n5.678,25;1\n"));
  const auto options = to_predict(dir, "x\n1.234\n5.678\n");
  CHECK(equal_bytes(first_feature(options, train.fitted()), torch::tensor({1234.0F, 5678.0F})));
  StateDict older = train.fitted();
  REQUIRE(older.erase("format"));
  CHECK(equal_bytes(first_feature(options, older), torch::tensor({1.234F, 5.678F})));
}

TEST_CASE("a key that contradicts the training data is an error with both values") {
  const TempDir dir;
  auto trained = written(dir, "train.csv", "x;day;label\n1,5;2020-01-31;0\n-9;2020-02-28;1\n");
  trained.missing_values = {"-9"};
  trained.missing = "0";
  const StateDict fitted = CsvTable(trained).fitted();
  const auto refused = [&](const char* key, const char* asked, const char* learnt, auto change) {
    CAPTURE(std::string(key));
    auto options = to_predict(dir, "x;day\n2;2020-01-31\n3;2020-01-31\n");
    change(options);
    CsvTable data(options);
    CHECK_THROWS_AS(data.take_fitted(fitted), ConfigError);
    const std::string message = message_of([&] { data.take_fitted(fitted); });
    for (const char* fact : {key, asked, learnt}) {
      CHECK_MESSAGE(contains(message, fact), message);
    }
  };
  refused("decimal", "\".\"", "\",\"", [](auto& o) { o.decimal = "."; });
  refused("delimiter", "\" \"", "\";\"", [](auto& o) {
    o.delimiter = " ";
    o.header = "no";
  });
  refused("missing_values", "[\"-\"]", "[\"-9\"]", [](auto& o) { o.missing_values = {"-"}; });
}

TEST_CASE("words for missing cells are those of the training data") {
  const TempDir dir;
  auto trained = written(dir, "train.csv", "x,y,label\n1,2,0\n-9,5,1\n3,4,1\n");
  trained.missing_values = {"-9"};
  trained.missing = "mean";
  const StateDict fitted = CsvTable(trained).fitted();
  CHECK(equal_bytes(first_feature(to_predict(dir, "x,y\n-9,1\n5,2\n"), fitted),
                    torch::tensor({2.0F, 5.0F})));
}

TEST_CASE("what the training data leaves open is found out from the new file") {
  const TempDir dir;
  const CsvTable train(written(dir, "train.csv", "x;label\n1;0\n2;1\n"));
  CHECK(train.fitted().at("format/decimal").as_string() == "auto");
  const auto options = to_predict(dir, "x\n1,5\n2,5\n");
  CHECK(equal_bytes(first_feature(options, train.fitted()), torch::tensor({1.5F, 2.5F})));
  std::string late = "x;label\n";  // its point comes after the lines that are looked at first
  for (int i = 0; i < 300; ++i) {
    late += "1;" + std::to_string(i % 2) + "\n";
  }
  const CsvTable longer(written(dir, "long.csv", late + "1.5;0\n"));
  CHECK(longer.fitted().at("format/decimal").as_string() == ".");
}

TEST_CASE("a first row of words is a row where the training data has no line of names") {
  const TempDir dir;
  auto trained = written(dir, "train.csv", "1,a,0\n2,b,1\n3,a,1\n");
  trained.label_column = "-1";
  const CsvTable train(trained);
  CHECK(train.fitted().at("format/header").as_string() == "no");
  auto options = written(dir, "new.csv", "2 rows\n?,a,0\n2,b,1\n3,a,1\n");
  options.label_column = "-1";
  options.missing = "0";
  StateDict fitted = train.fitted();
  fitted.set("fills_missing", true);
  CHECK(equal_bytes(first_feature(options, fitted), torch::tensor({0.0F, 2.0F, 3.0F})));
}

TEST_CASE("a first line of counts is no row for validations either") {
  const TempDir dir;
  auto options = written(dir, "iris.csv", "4,1,red,blue\n1,2,3,0\n4,5,6,1\n7,8,9,0\n2,2,2,1\n");
  options.label_column = "-1";
  const CsvTable train(options);
  REQUIRE(train.size() == 4);
  REQUIRE(train.fitted().at("format/header").as_string() == "no");
  CsvTable val(options);
  val.take_fitted(train.fitted());
  CHECK(val.size() == 4);
  CHECK(equal_bytes(val.get(0)["label"], train.get(0)["label"]));
}

TEST_CASE("a format comes back from its state, and a damaged one is refused") {
  TableFormat format;
  format.delimiter = ";";
  format.decimal = ",";
  format.thousands = ".";
  format.header = "yes";
  format.encoding = "latin-1";
  format.missing_values = {"-9"};
  const StateDict state = to_state(format);
  CHECK(first_difference(to_state(format_from(state)), state).empty());
  StateDict damaged = state;
  damaged.set("decimal", ";");
  CHECK_THROWS_AS(format_from(damaged), CheckpointError);
  CHECK_THROWS_AS(format_from({}), CheckpointError);
}

TEST_SUITE_END();
