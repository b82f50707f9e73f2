#include "data/data_check.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "data/data_files.h"
#include "data/dataset.h"
#include "data/image_files.h"
#include "data/images/image_folder.h"
#include "data/tables/csv_table.h"
#include "data/tensor_dataset.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

using Kind = DataFinding::Kind;

namespace {

DataLoader loader_of(TensorMap tensors) {
  return DataLoader(from_tensors(std::move(tensors)), {});
}

const DataFinding* find(const DataCheck& found, Kind kind, const std::string& loader) {
  const auto at = std::find_if(found.findings.begin(), found.findings.end(), [&](const auto& one) {
    return one.kind == kind && one.loader == loader;
  });
  return at == found.findings.end() ? nullptr : &*at;
}

/// Samples whose reading fails for some.
class Damaged final : public Dataset {
 public:
  using Options = NoOptions;

  explicit Damaged(const Options&) {}

  int64_t size() const override { return 30; }

  Sample get(int64_t index) const override {
    if (index % 2 == 1) {
      throw DataError("file 7: offset 3");
    }
    return {{"x", at::full({2}, index, at::kFloat)}};
  }
};

}  // namespace

TEST_SUITE_BEGIN("data/data_check");

TEST_CASE("sound data gives no findings, and every sample is read") {
  const at::Tensor features = at::rand({40, 3});
  const at::Tensor label = at::arange(40).remainder(4);
  const at::Tensor other = at::rand({10, 3}) + 2;
  const DataCheck found =
      check_data({{"train", loader_of({{"features", features}, {"label", label}})},
                  {"val", loader_of({{"features", other}, {"label", label.slice(0, 0, 10)}})}},
                 {});
  CHECK(found.findings.empty());
  CHECK(found.samples == std::vector<int64_t>{40, 10});
}

TEST_CASE("samples that cannot be read are counted, and the first ten are told") {
  const DataCheck found = check_data({{"train", DataLoader(use<Damaged>(), {})}}, {});
  REQUIRE(found.findings.size() == 1);
  const DataFinding& finding = found.findings.front();
  CHECK(finding.kind == Kind::Unreadable);
  CHECK(finding.count == 15);
  CHECK(finding.places.size() == 10);
  CHECK(contains(finding.places.front(), "sample 1"));
  CHECK(contains(finding.places.front(), "offset 3"));
}

TEST_CASE("a data set that cannot be opened is a finding, and the others are read") {
  CsvTable::Options options;
  options.file = "/nowhere/a.csv";
  const DataCheck found = check_data({{"train", DataLoader(use<CsvTable>(options), {})},
                                      {"val", loader_of({{"x", at::rand({3, 2})}})}},
                                     {});
  REQUIRE(find(found, Kind::Unreadable, "train") != nullptr);
  CHECK(contains(find(found, Kind::Unreadable, "train")->places.front(), "/nowhere/a.csv"));
  CHECK(found.samples == std::vector<int64_t>{0, 3});
}

TEST_CASE("NaN, infinite numbers and labels that the model does not know are found") {
  at::Tensor x = at::rand({30, 2});
  x[3][1] = std::nan("");
  x[5][0] = INFINITY;
  const at::Tensor label = at::arange(30).remainder(3);
  label[7] = 3;
  label[8] = -1;
  label[9] = -100;  // left out by losses
  DataCheckOptions options;
  options.classes = 3;
  const DataCheck found = check_data({{"train", loader_of({{"x", x}, {"label", label}})}}, options);
  const DataFinding* const numbers = find(found, Kind::NotFinite, "train");
  REQUIRE(numbers != nullptr);
  CHECK(numbers->count == 2);
  CHECK(numbers->places == std::vector<std::string>{"sample 3", "sample 5"});
  const DataFinding* const range = find(found, Kind::LabelRange, "train");
  REQUIRE(range != nullptr);
  CHECK(range->count == 2);
  CHECK(range->places.front() == "sample 7: 3");
}

TEST_CASE("a sample of one loader that another one has too is found, whatever its label is") {
  const at::Tensor x = at::rand({30, 4});
  const DataCheck found =
      check_data({{"train", loader_of({{"x", x}, {"label", at::arange(30)}})},
                  {"val", loader_of({{"x", x.slice(0, 28)}, {"label", at::arange(2)}})}},
                 {});
  const DataFinding* const twins = find(found, Kind::Duplicate, "val");
  REQUIRE(twins != nullptr);
  CHECK(twins->count == 2);
  CHECK(twins->places.front() == "sample 0 is sample 28");
  CHECK(contains(twins->what, "train"));
}

TEST_CASE("a picture is the same in two loaders when its file is, however it is cut") {
  const TempDir dir;
  const auto folder = [&](const char* name, const Image& picture) {
    std::filesystem::create_directories(dir / name / "a");
    write_file(dir / name / "a" / "1.png", png_bytes(picture));
    write_file(dir / name / "a" / "2.png", png_bytes(ramp(20, 20, 3)));
  };
  folder("train", ramp(12, 20, 3));
  folder("val", ramp(15, 9, 3));
  ImageFolder::Options train;
  train.root = (dir / "train").string();
  train.height = train.width = 8;
  train.crop = "random";
  ImageFolder::Options val = train;
  val.root = (dir / "val").string();
  val.crop = "center";
  const DataCheck found = check_data({{"train", DataLoader(use<ImageFolder>(train), {})},
                                      {"val", DataLoader(use<ImageFolder>(val), {})}},
                                     {});
  REQUIRE(found.findings.size() == 1);
  CHECK(found.findings.front().kind == Kind::Duplicate);
  CHECK(found.findings.front().places.front() == "sample a/2.png is sample a/2.png");
}

TEST_CASE("columns that never change or that give the label away are found by name") {
  const TempDir dir;
  std::string text = "a,constant,code,copy,label\n";
  for (int i = 0; i < 60; ++i) {
    const int label = i * 7 % 3;
    text += std::to_string(i * i % 59) + ",5," + std::to_string(10 - 3 * (label == 1 ? 9 : label)) +
            "," + std::to_string(2.5 * label - 1) + "," + std::to_string(label) + "\n";
  }
  write_file(dir / "a.csv", text);
  CsvTable::Options options;
  options.file = (dir / "a.csv").string();
  const DataCheck found = check_data({{"train", DataLoader(use<CsvTable>(options), {})}}, {});
  const DataFinding* const constant = find(found, Kind::ConstantColumn, "train");
  REQUIRE(constant != nullptr);
  CHECK(constant->places == std::vector<std::string>{"constant"});
  const DataFinding* const leak = find(found, Kind::Leak, "train");
  REQUIRE(leak != nullptr);
  REQUIRE(leak->count == 2);
  CHECK(contains(leak->places[0], "code"));
  CHECK(contains(leak->places[1], "copy"));
}

TEST_SUITE_END();
