#include "data/data_summary.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/data_files.h"
#include "data/tables/csv_table.h"
#include "data/tensor_dataset.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// Gives the numbers 0, 1, … and knows no size.
class UnsizedCounter final : public IterableDataset {
 public:
  using Options = NoOptions;

  explicit UnsizedCounter(const Options&) {}

  void start(int64_t) override { next_ = 0; }

  std::optional<Sample> next() override { return Sample{{"x", at::full({}, next_++, at::kLong)}}; }

 private:
  int64_t next_ = 0;
};

}  // namespace

TEST_SUITE_BEGIN("data/data_summary");

TEST_CASE("least, most, mean and deviation are of the finite numbers") {
  NumberSummary numbers;
  for (const double number : {1e9 + 1.0, 1e9 + 3.0, std::nan(""), 1e9 + 5.0, HUGE_VAL}) {
    numbers.add(number);
  }
  CHECK(numbers.count() == 3);
  CHECK(numbers.not_finite() == 2);
  CHECK(numbers.least() == 1e9 + 1.0);
  CHECK(numbers.most() == 1e9 + 5.0);
  CHECK(numbers.mean() == doctest::Approx(1e9 + 3.0));
  CHECK(numbers.deviation() == doctest::Approx(std::sqrt(8.0 / 3.0)));
  CHECK(NumberSummary().deviation() == 0.0);
}

TEST_CASE("a table's columns and classes are summed up by name") {
  const TempDir dir;
  write_file(dir / "a.csv", "x,y,label\n1,10,cat\n2,30,dog\n3,20,dog\n");
  CsvTable::Options options;
  options.file = (dir / "a.csv").string();
  options.label_type = "category";
  const DataSummary summary = summarise(DataLoader(use<CsvTable>(options), {}), 100, 2);
  CHECK(summary.samples == 3);
  CHECK(summary.visited == 3);
  CHECK(summary.first.size() == 2);
  REQUIRE(summary.tensors.size() == 2);
  CHECK(summary.tensors[0].name == "features");
  CHECK(summary.tensors[0].dtype == "float32");
  CHECK(summary.tensors[0].shape == std::vector<int64_t>{2});
  CHECK(summary.tensors[1].dtype == "int64");
  REQUIRE(summary.columns.size() == 2);
  CHECK(summary.columns[1].name == "y");
  CHECK(summary.columns[1].numbers.mean() == 20.0);
  using Classes = std::vector<std::pair<std::string, int64_t>>;
  CHECK(summary.classes == Classes{{"cat", 1}, {"dog", 2}});
}

TEST_CASE("few samples of many are spread over the data; of a stream they are the first") {
  const DataLoader rows(from_tensors({{"x", at::arange(100)}}), {});
  const DataSummary spread = summarise(rows, 4, 4);
  REQUIRE(spread.first.size() == 4);
  CHECK(spread.first[0].number == 0);
  CHECK(spread.first[3].number == 75);
  CHECK(spread.visited == 4);
  LoaderOptions options;
  options.batch_size = 3;
  const DataSummary first = summarise(DataLoader(use<UnsizedCounter>(), options), 4, 9);
  CHECK(!first.samples);
  CHECK(first.visited == 4);
  CHECK(first.tensors[0].numbers.most() == 3.0);
}

TEST_SUITE_END();
