#include "data/derived/windows.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <vector>

#include "core/error.h"
#include "core/state_dict.h"
#include "data/data_files.h"
#include "data/derived/combined.h"
#include "data/tables/csv_table.h"
#include "data/tensor_dataset.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// A series of `count` rows (t, 10 t) from t = `first` on.
Factory<DataSource> series(int64_t first, int64_t count) {
  const at::Tensor t = torch::arange(first, first + count, torch::kFloat);
  return from_tensors({{"features", torch::stack({t, t * 10}, 1)}, {"time", t}});
}

Windows::Options options_of(std::vector<Factory<DataSource>> parts, int64_t length) {
  Windows::Options options;
  options.parts = std::move(parts);
  options.length = length;
  return options;
}

std::vector<float> numbers(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.contiguous();
  return {flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel()};
}

/// The first number of each window.
std::vector<float> starts(const Windows& data) {
  std::vector<float> found;
  for (int64_t i = 0; i < data.size(); ++i) {
    found.push_back(numbers(data.get(i)["features"])[0]);
  }
  return found;
}

}  // namespace

TEST_SUITE_BEGIN("data/windows");

TEST_CASE("a window has its rows, and its label those behind it") {
  auto options = options_of({series(0, 6)}, 2);
  options.horizon = 2;
  const Windows data(options);
  CHECK(data.size() == 3);
  const Batch batch = data.get_batch({1, 0});
  CHECK(batch["features"].sizes() == at::IntArrayRef({2, 4}));
  CHECK(numbers(batch["features"][0]) == std::vector<float>{1, 10, 2, 20});
  CHECK(numbers(batch["label"][0]) == std::vector<float>{3, 30, 4, 40});
  options.flat = false;
  const Windows shaped(options);
  CHECK(shaped.get(0)["features"].sizes() == at::IntArrayRef({2, 2}));
  CHECK(shaped.get(0)["label"].sizes() == at::IntArrayRef({2, 2}));
  CHECK(data.facts().features == 4);
  CHECK(data.facts().targets.size() == 4);
  CHECK_THROWS_AS(data.get(3), UsageError);
}

TEST_CASE("windows stand a stride apart, and none crosses into the next series") {
  auto options = options_of({series(0, 6), series(100, 5)}, 2);
  CHECK(starts(Windows(options)) == std::vector<float>{0, 1, 2, 3, 100, 101, 102});
  options.stride = 2;
  CHECK(starts(Windows(options)) == std::vector<float>{0, 2, 100, 102});
}

TEST_CASE("rows that lie further apart than a gap end a series") {
  const at::Tensor time = torch::tensor({0.0, 1.0, 2.0, 5.0, 6.0, 7.0});
  const at::Tensor x = torch::arange(6, torch::kFloat).unsqueeze(1);
  auto options = options_of({from_tensors({{"features", x}, {"time", time}})}, 2);
  options.time = "time";
  options.max_gap = 1.5;
  const Windows data(options);
  CHECK(starts(data) == std::vector<float>{0, 3});
  CHECK(data.get(0)["label"].dim() == 0);
  options.parts = {from_tensors({{"features", x}, {"time", time.flip(0)}})};
  CHECK(contains(message_of([&] { Windows{options}; }), "row 1 is earlier"));
}

TEST_CASE("times are those of a column, of dates or of numbers that float32 cannot hold") {
  const TempDir dir;
  CsvTable::Options table;
  table.file = (dir / "a.csv").string();
  table.label_column = "";
  table.ignore_columns = {"date", "unix"};
  auto options = options_of({use<CsvTable>(table)}, 2);
  const auto starts_by = [&](const char* time, double gap) {
    options.time = time;
    options.max_gap = gap;
    return starts(Windows(options));
  };
  write_file(dir / "a.csv",
             "date,unix,x\n2024-01-01 00:00,1700000000,0\n2024-01-01 00:01,1700000001,1\n"
             "2024-01-01 00:02,1700000002,2\n2024-01-01 00:04,1700000004,3\n"
             "2024-01-01 00:05,1700000005,4\n2024-01-01 00:06,1700000006,5\n");
  CHECK(starts_by("unix", 1.0) == std::vector<float>{0, 3});
  CHECK(starts_by("date", 60.0) == std::vector<float>{0, 3});
  CHECK(starts_by("unix", 2.0) == std::vector<float>{0, 1, 2, 3});
  CHECK(contains(message_of([&] { starts_by("unux", 1.0); }), "did you mean \"unix\""));
}

TEST_CASE("the parts of a split by time share no row of a label") {
  auto options = options_of({series(0, 20)}, 3);
  options.val = 0.2;
  options.test = 0.1;
  std::vector<float> labels;
  for (const char* part : {"train", "val", "test"}) {
    options.part = part;
    const Windows data(options);
    for (int64_t i = 0; i < data.size(); ++i) {
      labels.push_back(numbers(data.get(i)["label"])[0]);
    }
  }
  std::vector<float> all;
  for (int64_t i = 3; i < 20; ++i) {
    all.push_back(static_cast<float>(i));
  }
  CHECK(labels == all);
}

TEST_CASE("columns to forecast are chosen by name, and one number is a label without dimensions") {
  const TempDir dir;
  write_file(dir / "a.csv", "a,b\n1,10\n2,20\n3,30\n4,40\n");
  CsvTable::Options table;
  table.file = (dir / "a.csv").string();
  table.label_column = "";
  table.scale = "none";
  auto options = options_of({use<CsvTable>(table)}, 2);
  options.target_columns = {"b"};
  const Windows data(options);
  CHECK(data.size() == 2);
  CHECK(data.get(0)["label"].item<float>() == 30);
  CHECK(data.get_batch({0, 1})["label"].sizes() == at::IntArrayRef({2}));
  CHECK(data.facts().feature_names.front() == "a[-2]");
  CHECK(data.facts().targets.front().name == "b[0]");
  options.target_columns = {"c"};
  CHECK(contains(message_of([&] { Windows{options}; }), "\"c\""));
}

TEST_CASE("a table within learns from the rows that train alone, and forecasts are given back") {
  const TempDir dir;
  std::string text = "a,b\n";
  for (int i = 0; i < 20; ++i) {
    text += std::to_string(1300 + i) + "," + std::to_string(i * i) + "\n";
  }
  write_file(dir / "a.csv", text);
  CsvTable::Options table;
  table.file = (dir / "a.csv").string();
  table.label_column = "";
  table.scale = "standard";
  auto options = options_of({use<CsvTable>(table)}, 2);
  options.val = 0.5;
  options.part = "val";
  options.target_columns = {"a"};
  Windows val(options);
  const DatasetFacts::Target target = val.facts().targets.front();
  CHECK(target.name == "a[0]");
  CHECK(target.shift == doctest::Approx(1304.5));  // of rows 0 to 9
  CHECK(target.original(val.get(0)["label"].item<double>()) == doctest::Approx(1310));
  options.part = "train";
  const Windows train(options);
  CHECK(first_difference(train.fitted(), val.fitted()).empty());
  val.take_fitted(train.fitted());
  CHECK(val.facts().targets.front().shift == target.shift);

  Subset::Options all;  // in another data set, as well
  all.of = use<CsvTable>(table);
  options.parts = {use<Subset>(all)};
  CHECK(Windows(options).facts().targets.front().shift == doctest::Approx(1304.5));

  table.label_column = "a";
  table.label_type = "value";
  table.target_scale = "log";
  options.parts = {use<CsvTable>(table)};
  options.target_columns = {};
  options.tensor = "label";
  CHECK(Windows(options).facts().targets.front().is_log);
}

TEST_CASE(
    "other shares than those of training are refused, and windows that are not split are not") {
  auto options = options_of({series(0, 20)}, 2);
  options.val = 0.2;
  options.part = "train";
  const StateDict fitted = Windows(options).fitted();
  options.part = "val";
  CHECK_NOTHROW(Windows(options).take_fitted(fitted));
  CHECK_NOTHROW(Windows(options).take_fitted({}));
  options.val = 0.4;
  Windows other(options);
  CHECK_THROWS_AS(other.take_fitted(fitted), ConfigError);
  CHECK(contains(message_of([&] { other.take_fitted(fitted); }), "val = 0.4"));
  options.val = 0.0;
  options.part.reset();
  CHECK_NOTHROW(Windows(options).take_fitted(fitted));
}

TEST_CASE("series that are too short, and options out of range, are refused") {
  auto options = options_of({series(0, 3)}, 3);
  CHECK(contains(message_of([&] { Windows{options}; }), "4 rows"));
  options.length = 0;
  CHECK_THROWS_AS(Windows{options}, UsageError);
  options.length = 1;
  options.val = 0.6;
  options.test = 0.4;
  options.part = "train";
  CHECK_THROWS_AS(Windows{options}, UsageError);
  options.test = 0;
  options.part.reset();
  CHECK(contains(message_of([&] { Windows{options}; }), "part must be given"));
  options.val = 0;
  options.test = 0;
  options.time = "time";
  CHECK_THROWS_AS(Windows{options}, UsageError);
}

TEST_SUITE_END();
