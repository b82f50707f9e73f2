// What CsvTable makes of the columns of tables as people have them.

#include <doctest/doctest.h>
#include <torch/types.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "core/error.h"
#include "data/data_files.h"
#include "data/tables/csv_table.h"
#include "support/campaign.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

TEST_SUITE_BEGIN("data/csv_columns");

namespace {

using Names = std::vector<std::string>;

CsvTable::Options over(const TempDir& dir, const std::string& text, const char* name = "t.csv") {
  write_file(dir / name, text);
  CsvTable::Options options{name};
  options.data_dir = dir.path();
  return options;
}

Batch whole(const CsvTable& data) {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < data.size(); ++i) {
    all.push_back(i);
  }
  return data.get_batch(all);
}

const char* const kPassengers =
    "Id;Survived;Age;Sex;Fare;Joined;Member\n"
    "1;yes;22,5;male;7,25;2024-01-01;true\n"
    "2;no;;female;71,5;2024-01-03;false\n"
    "3;no;30,5;female;8;2024-01-02;true\n"
    "4;yes;NA;child;10;2024-01-04;false\n";

CsvTable::Options passengers(const TempDir& dir) {
  auto options = over(dir, kPassengers);
  options.label_column = "Survived";
  options.ignore_columns = {"Id"};
  options.missing = "mean";
  return options;
}

}  // namespace

TEST_CASE("numbers, words, dates, truth values and class names become tensors") {
  const TempDir dir;
  const CsvTable data(passengers(dir));
  CHECK(data.feature_names() == Names{"Age", "Fare", "Joined", "Member"});
  const Batch batch = whole(data);
  CHECK(equal_bytes(batch["features"],
                    torch::tensor({{22.5F, 7.25F, 19723.0F, 1.0F},
                                   {26.5F, 71.5F, 19725.0F, 0.0F},
                                   {30.5F, 8.0F, 19724.0F, 1.0F},
                                   {26.5F, 10.0F, 19726.0F, 0.0F}})));
  // words by their order: child, female, male; 0 is left for those that training did not have
  CHECK(equal_bytes(batch["categories"], torch::tensor({{3}, {2}, {2}, {1}}, at::kLong)));
  CHECK(equal_bytes(batch["label"], torch::tensor({1, 0, 0, 1}, at::kLong)));
  const DatasetFacts facts = data.facts();
  CHECK(facts.features == 4);
  CHECK(facts.categories == std::vector<int64_t>{4});
  CHECK(facts.category_names == Names{"Sex"});
  CHECK(facts.class_names == Names{"no", "yes"});
  CHECK(facts.class_weights == std::vector<double>{1.0, 1.0});
  for (const char* fact : {"';'", "decimal comma", "7 columns", "1 text column", "2 classes"}) {
    CAPTURE(std::string(fact));
    CHECK(contains(data.notes().summary, fact));
  }
}

TEST_CASE("missing cells are an error with their places, or are filled, marked or dropped") {
  const TempDir dir;
  auto options = passengers(dir);
  options.missing = "error";
  const std::string message = message_of([&] { CsvTable{options}; });
  CHECK(contains(message, "t.csv:3:6:"));
  CHECK(contains(message, "\"Age\""));
  CHECK(contains(message, "2 such cells"));
  CHECK(contains(message, "t.csv:5:7"));
  CHECK(contains(message, "missing"));
  const auto ages = [&](const char* missing) {
    options.missing = missing;
    return whole(CsvTable(options))["features"].select(1, 0).contiguous();
  };
  CHECK(equal_bytes(ages("-1"), torch::tensor({22.5F, -1.0F, 30.5F, -1.0F})));
  CHECK(equal_bytes(ages("median"), torch::tensor({22.5F, 26.5F, 30.5F, 26.5F})));
  CHECK(equal_bytes(ages("drop"), torch::tensor({22.5F, 30.5F})));
  options.missing = "mean";
  options.missing_indicator = true;
  const CsvTable marked(options);
  CHECK(marked.feature_names() == Names{"Age", "Age_missing", "Fare", "Joined", "Member"});
  CHECK(equal_bytes(whole(marked)["features"].select(1, 1).contiguous(),
                    torch::tensor({0.0F, 1.0F, 0.0F, 1.0F})));
}

TEST_CASE("words that stand for nothing can be chosen") {
  const TempDir dir;
  auto options = over(dir, "a,label\n-9,0\n1,1\n");
  options.missing_values = {"-9"};
  options.missing = "0.5";
  CHECK(equal_bytes(whole(CsvTable(options))["features"], torch::tensor({{0.5F}, {1.0F}})));
}

TEST_CASE("columns are chosen and left out by name and glob, and read as words") {
  const TempDir dir;
  auto options = over(dir, "id,x1,x2,zip,label\n7,1,2,100,0\n8,3,4,200,1\n");
  options.feature_columns = {"x*", "zip"};
  options.text_columns = {"zip"};
  const CsvTable data(options);
  CHECK(data.feature_names() == Names{"x1", "x2"});
  CHECK(equal_bytes(whole(data)["categories"], torch::tensor({{1}, {2}}, at::kLong)));
  options.feature_columns = {};
  options.ignore_columns = {"x*"};
  CHECK(CsvTable(options).feature_names() == Names{"id"});
  options.ignore_columns = {"y"};
  CHECK(contains(message_of([&] { CsvTable{options}; }), "\"y\""));
}

TEST_CASE("numbers and text in one column are an error with ten places and the count") {
  const TempDir dir;
  std::string text = "a,label\n1,0\n2,1\n";
  for (int i = 0; i < 12; ++i) {
    text += "x" + std::to_string(i) + ",0\n";
  }
  auto options = over(dir, text);
  const std::string message = message_of([&] { CsvTable{options}; });
  for (const char* fact : {"t.csv:4:1:", "\"x0\"", "12 such cells", "t.csv:13:1", "text_columns"}) {
    CAPTURE(std::string(fact));
    CHECK(contains(message, fact));
  }
  CHECK(!contains(message, "t.csv:14:1"));
  options.text_columns = {"a"};
  CHECK(CsvTable(options).facts().categories == std::vector<int64_t>{15});
}

TEST_CASE("rows with another number of fields are listed") {
  const TempDir dir;
  const auto options = over(dir, "a,label\n1\n2,0\n1,2,3\n");
  const std::string message = message_of([&] { CsvTable{options}; });
  CHECK(contains(message, "t.csv:2:1:"));
  CHECK(contains(message, "t.csv:4:5:"));
  CHECK(contains(message, "2 lines"));
}

TEST_CASE("numbers are scaled by what the rows for training hold, and only by these") {
  const TempDir dir;
  std::string text = "a,label\n";
  for (int i = 0; i < 10; ++i) {
    text += std::to_string(i * i) + "," + std::to_string(i % 2) + "\n";
  }
  auto options = over(dir, text);
  options.split.part = "train";
  options.split.val = 0.3;
  options.scale = "standard";
  const CsvTable train(options);
  const at::Tensor x = whole(train)["features"].to(at::kDouble);
  CHECK(std::fabs(x.mean().item<double>()) < 1e-6);
  CHECK(x.std(false).item<double>() == doctest::Approx(1.0));
  options.split.part = "val";
  const CsvTable val(options);
  CHECK(train.size() == 7);
  CHECK(val.size() == 3);
  CHECK(first_difference(train.fitted(), val.fitted()).empty());
  options.split = {};
  options.scale = "minmax";
  CHECK(whole(CsvTable(options))["features"].max().item<float>() == 1.0F);
  options.scale = "robust";
  CHECK(whole(CsvTable(options))["features"].median().abs().item<float>() < 0.2F);
  options.scale = "log";
  CHECK(std::fabs(whole(CsvTable(options))["features"].mean().item<float>()) < 1e-6F);
}

TEST_CASE("values to predict are scaled, and the facts scale predictions back") {
  const TempDir dir;
  for (const char* scale : {"none", "standard", "minmax", "robust", "log"}) {
    CAPTURE(std::string(scale));
    auto options = over(dir, "a,price\n1,10\n2,20\n3,60\n");
    options.label_column = "price";
    options.label_type = "value";
    options.target_scale = scale;
    const CsvTable data(options);
    const auto label = whole(data)["label"];
    const DatasetFacts facts = data.facts();
    REQUIRE(facts.targets.size() == 1);
    CHECK(facts.targets[0].name == "price");
    for (int64_t i = 0; i < 3; ++i) {
      const double price = i == 0 ? 10.0 : (i == 1 ? 20.0 : 60.0);
      CHECK(facts.targets[0].original(label[i].item<double>()) == doctest::Approx(price));
    }
  }
}

TEST_CASE("what a label is, is found out, and asked for where it can be two things") {
  const TempDir dir;
  const auto facts = [&](const std::vector<std::string>& labels, const char* type = "auto") {
    std::string text = "a,label\n";
    for (const std::string& label : labels) {
      text += "1," + label + "\n";
    }
    auto options = over(dir, text);
    options.label_type = type;
    return CsvTable(options).facts();
  };
  CHECK(facts({"0", "1", "2", "0", "1", "2"}).classes == 3);
  CHECK(facts({"1", "2", "3", "3", "2", "1"}).class_names == Names{"1", "2", "3"});
  CHECK(facts({"-1", "1", "1"}).class_names == Names{"-1", "1"});
  CHECK(facts({"cat", "dog", "cat"}).class_names == Names{"cat", "dog"});
  CHECK(facts({"1.5", "2", "3"}).targets.size() == 1);
  const std::string message = message_of([&] { facts({"3", "5", "8", "8"}); });
  CHECK(contains(message, "label_type"));
  CHECK(contains(message, "from 3 to 8"));
  CHECK(facts({"3", "5", "8"}, "category").classes == 3);
  CHECK(facts({"3", "5", "8"}, "class").classes == 9);
  CHECK(!facts({"3", "5", "8"}, "value").classes);
}

TEST_CASE("a table without names, with its target in another file, is read") {
  const TempDir dir;  // as scikit-learn's diabetes
  auto options = over(dir, "59 2 32.1\n48 1 21.6\n72 2 30.5\n");
  write_gzip(dir / "target.csv.gz", "1.51e+02\n7.5e+01\n1.41e+02\n");
  options.target_file = "target.csv.gz";
  options.label_type = "value";
  const CsvTable data(options);
  CHECK(data.feature_names() == Names{"column1", "column2", "column3"});
  CHECK(equal_bytes(whole(data)["label"], torch::tensor({151.0F, 75.0F, 141.0F})));
  write_gzip(dir / "target.csv.gz", "1\n2\n");
  CHECK(contains(message_of([&] { CsvTable{options}; }), "3 rows"));
}

TEST_CASE("columns without names are named by number, also from the end") {
  const TempDir dir;
  auto options = over(dir, "150,4,setosa\n5.1,3.5,0\n4.9,3.0,1\n");
  options.label_column = "-1";
  const CsvTable data(options);
  CHECK(data.feature_names() == Names{"column1", "column2"});
  CHECK(equal_bytes(whole(data)["label"], torch::tensor({0, 1}, at::kLong)));
  CHECK(contains(data.notes().warnings.front(), "line 1"));
  options.label_column = "label";
  CHECK(contains(message_of([&] { CsvTable{options}; }), "column3"));
}

TEST_CASE("several targets, weights and names of samples come with them") {
  const TempDir dir;
  auto options = over(dir, "who,a,y1,y2,w\nx-1,1,2,3,0.5\nx-2,4,5,6,2\n");
  options.target_columns = {"y1", "y2"};
  options.weight_column = "w";
  options.id_column = "who";
  const CsvTable data(options);
  const Batch batch = whole(data);
  CHECK(data.feature_names() == Names{"a"});
  CHECK(equal_bytes(batch["label"], torch::tensor({{2.0F, 3.0F}, {5.0F, 6.0F}})));
  CHECK(equal_bytes(batch["weight"], torch::tensor({0.5F, 2.0F})));
  CHECK(data.sample_name(1) == "x-2");
  options = over(dir, "w,label\n-1,0\n");
  options.weight_column = "w";
  CHECK(contains(message_of([&] { CsvTable{options}; }), "t.csv:2:1:"));
}

TEST_CASE("several files are one table, in the order of their names") {
  const TempDir dir;
  over(dir, "a,label\n3,0\n", "part2.csv");
  auto options = over(dir, "a,label\n1,0\n2,1\n", "part1.csv");
  options.file = "part*.csv";
  CHECK(equal_bytes(whole(CsvTable(options))["features"], torch::tensor({{1.0F}, {2.0F}, {3.0F}})));
  over(dir, "b,label\n3,0\n", "part3.csv");
  CHECK(contains(message_of([&] { CsvTable{options}; }), "part3.csv"));
  over(dir, "a,label\n3,0\nx,1\n", "part3.csv");
  CHECK(contains(message_of([&] { CsvTable{options}; }), "part3.csv:3:1:"));
  options.file = "none*.csv";
  CHECK(contains(message_of([&] { CsvTable{options}; }), "none*.csv"));
}

TEST_CASE("Latin-1 is found out, and dates are read in other orders and parts") {
  const TempDir dir;
  auto options = over(dir, "town,day,label\nK\xf6ln,03.02.2024,0\nBonn,04.02.2024,1\n");
  options.date_order = "dmy";
  options.date_parts = {"month", "weekday"};
  const CsvTable data(options);
  CHECK(data.feature_names() == Names{"day_month", "day_weekday"});
  CHECK(equal_bytes(whole(data)["features"], torch::tensor({{2.0F, 5.0F}, {2.0F, 6.0F}})));
  CHECK(contains(data.notes().warnings.front(), "Latin-1"));
  options = over(dir, "date,co2\n19580329,316.1\n19580405,317.3\n");
  options.label_column = "co2";
  options.label_type = "value";
  options.date_columns = {"date"};
  CHECK(equal_bytes(whole(CsvTable(options))["features"], torch::tensor({{-4296.0F}, {-4289.0F}})));
}

TEST_CASE("columns that only name the rows are warned of") {
  const TempDir dir;
  std::string text = "Id,name,year,a,label\n";
  for (int i = 0; i < 40; ++i) {
    text += std::to_string(i + 1) + ",n" + std::to_string(i) + "," + std::to_string(1950 + i) +
            "," + std::to_string(i * i) + ",0\n";
  }
  const CsvTable data(over(dir, text));
  REQUIRE(data.notes().warnings.size() == 2);
  CHECK(contains(data.notes().warnings[0], "\"Id\""));
  CHECK(contains(data.notes().warnings[1], "\"name\""));
}

TEST_CASE("what was learnt goes to another table, also through its state") {
  const TempDir dir;
  auto options = passengers(dir);
  options.scale = "standard";
  const CsvTable train(options);
  write_file(dir / "new.csv",
             "Sex;Age;Fare;Member;Joined\nfemale;22,5;8;true;2024-01-01\nother;;9;no;2024-01-01\n");
  options.file = "new.csv";
  options.label_column = "";
  options.ignore_columns = {};
  CsvTable other(options);
  other.take_fitted(train.fitted());
  CHECK(other.feature_names() == train.feature_names());
  CHECK(first_difference(other.fitted(), train.fitted()).empty());
  const Batch batch = whole(other);
  CHECK(batch.find("label") == nullptr);
  CHECK(equal_bytes(batch["categories"], torch::tensor({{2}, {0}}, at::kLong)));
  const at::Tensor of_train = whole(train)["features"];
  CHECK(equal_bytes(batch["features"][0][0], of_train[0][0]));  // the age
  CHECK(equal_bytes(batch["features"][1][0], of_train[1][0]));  // its mean stands for a missing one
  CHECK(equal_bytes(batch["features"][0][1], of_train[2][1]));  // the fare
}

TEST_CASE("a table with other columns, or with classes that training lacked, is refused") {
  const TempDir dir;
  const CsvTable train(over(dir, "a,b,label\n1,2,x\n3,4,y\n"));
  CsvTable other(over(dir, "a,c,label\n1,2,x\n", "other.csv"));
  std::string message = message_of([&] { other.take_fitted(train.fitted()); });
  CHECK(contains(message, "other.csv"));
  CHECK(contains(message, "lacks [\"b\"]"));
  CHECK(contains(message, "[\"c\"]"));
  CsvTable classes(over(dir, "a,b,label\n1,2,x\n3,4,z\n", "classes.csv"));
  message = message_of([&] { classes.take_fitted(train.fitted()); });
  CHECK(contains(message, "classes.csv:3:5:"));
  CHECK(contains(message, "\"z\""));
  CHECK_THROWS_AS(classes.take_fitted({{"type", "Glyphs"}}), CheckpointError);
  CHECK_THROWS_AS(classes.take_fitted({}), CheckpointError);
}

TEST_CASE("a damaged table is read, or refused with an Error: nothing else") {
  const TempDir dir;
  std::mt19937 random(4);
  const std::string letters("\"\n\r;, .-+19eEaN\t|#\xc3\xff\x01", 22);
  for (int trial = 0; trial < 300 * campaign_scale(); ++trial) {
    std::string text = kPassengers;
    for (size_t i = 1 + random() % 4; i > 0; --i) {
      const size_t at = random() % text.size();
      const char letter = letters[random() % letters.size()];
      random() % 2 == 0 ? text.insert(at, 1, letter) : text.replace(at, 1, 1, letter);
    }
    CAPTURE(text);
    auto options = over(dir, text);
    options.label_column = "Survived";
    options.missing = "mean";
    try {
      const CsvTable data(options);
      CHECK(data.size() > 0);
    } catch (const Error&) {
    }
  }
}

TEST_CASE("sorted classes are split in their shares") {
  const TempDir dir;
  std::string text = "a,label\n";
  for (int i = 0; i < 60; ++i) {
    text += std::to_string(i * i % 17) + (i < 20 ? ",a\n" : (i < 40 ? ",b\n" : ",c\n"));
  }
  auto options = over(dir, text);
  options.split.part = "val";
  options.split.val = 0.2;
  options.split.by = "stratified";
  const at::Tensor labels = whole(CsvTable(options))["label"];
  for (int64_t k = 0; k < 3; ++k) {
    CHECK(labels.eq(k).sum().item<int64_t>() == 4);
  }
  options.split.part = "test";
  CHECK(contains(message_of([&] { CsvTable{options}; }), "\"test\""));
}

TEST_SUITE_END();
