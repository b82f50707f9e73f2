#include "loops/predict.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <vector>

#include "core/error.h"
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
