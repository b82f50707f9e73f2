#include "loops/predict.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "loops/sample_stream.h"
#include "support/contains.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

TEST_SUITE_BEGIN("loops/predict");

TEST_CASE("C90: predictions in pieces are those of the whole, batch by batch, and none is kept") {
  const TempDir dir;
  Trainer trainer(tiny_options(dir / "run"), quiet_log());
  trainer.fit(tiny_loader("train"));
  std::vector<at::Tensor> pieces;
  std::vector<int64_t> numbers;
  PredictOptions options;
  options.return_outputs = false;
  options.write = [&](const Outputs& outputs, int64_t batch_idx) {
    pieces.push_back(outputs["logits"]);
    numbers.push_back(batch_idx);
  };
  const DataLoader data = tiny_loader("val", 9, 2);
  CHECK(predict(trainer, data, options).items().empty());
  CHECK(numbers == std::vector<int64_t>{0, 1, 2, 3, 4});
  CHECK_FALSE(std::filesystem::exists(trainer.state().artifact_dir / "predictions.pt"));
  CHECK_FALSE(std::filesystem::exists(trainer.state().artifact_dir / "predictions"));
  CHECK(at::cat(pieces).equal(trainer.predict(data)["logits"]));
}

TEST_CASE("the table has a line for each sample that was predicted, with and without outputs") {
  const TempDir dir;
  Trainer trainer(tiny_options(dir / "run"), quiet_log());
  trainer.fit(tiny_loader("train"));
  const DataLoader data = tiny_loader("val", 9, 2);
  const auto lines = [&](const DataLoader& loader, const PredictOptions& options) {
    predict(trainer, loader, options);
    std::vector<std::string> found;
    std::ifstream file(trainer.state().artifact_dir / "predictions.csv");
    for (std::string line; std::getline(file, line);) {
      found.push_back(line);
    }
    return found;
  };
  const std::vector<std::string> all = lines(data, {});
  REQUIRE(all.size() == 10);
  CHECK(all.back().substr(0, 2) == "8,");
  PredictOptions options;
  options.return_outputs = false;
  CHECK(lines(data, options) == all);
  options.subset_num_batches = 2;
  const std::vector<std::string> first(all.begin(), all.begin() + 5);
  CHECK(lines(data, options) == first);
  options.return_outputs = true;
  CHECK(lines(data, options) == first);
  CHECK(lines(data.first(4), {}) == first);
}

TEST_CASE("samples without names leave no table, and the log says why") {
  const TempDir dir;
  std::string said;
  Trainer trainer(tiny_options(dir / "run"), TextLog::to([&](LogLevel, std::string_view message) {
                    said += fmt::format("{}\n", message);
                  }));
  trainer.fit(tiny_loader("train"));
  predict(trainer, DataLoader(use<SampleStream>({4})), PredictOptions());
  CHECK_FALSE(std::filesystem::exists(trainer.state().artifact_dir / "predictions.csv"));
  CHECK(contains(said, "predictions.csv is not written: its samples have no names"));
}

TEST_CASE("predictions of the first batches are the first rows") {
  const TempDir dir;
  Trainer trainer(tiny_options(dir / "run"), quiet_log());
  trainer.fit(tiny_loader("train"));
  PredictOptions options;
  options.subset_num_batches = 2;
  const DataLoader data = tiny_loader("val", 9, 2);
  const at::Tensor first = predict(trainer, data, options)["logits"];
  CHECK(first.equal(trainer.predict(data)["logits"].narrow(0, 0, 4)));
  options.subset_num_batches = 0;
  CHECK_THROWS_AS(predict(trainer, data, options), UsageError);
}

TEST_SUITE_END();
