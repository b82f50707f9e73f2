#include "data/generated/glyphs.h"

#include <doctest/doctest.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "core/state_dict.h"
#include "data/data_loader.h"

using namespace rondo;

namespace {

at::Tensor images(const Glyphs::Options& options) {
  const Glyphs glyphs(options);
  std::vector<int64_t> all(static_cast<size_t>(glyphs.size()));
  for (size_t i = 0; i < all.size(); ++i) {
    all[i] = static_cast<int64_t>(i);
  }
  return glyphs.get_batch(all)["image"];
}

double accuracy(torch::nn::Sequential& model, const DataLoader& loader) {
  const torch::NoGradGuard guard;
  int64_t right = 0;
  int64_t count = 0;
  const auto stream = loader.stream({}, 1);
  while (auto batch = stream->next()) {
    right +=
        model->forward((*batch)["image"]).argmax(1).eq((*batch)["label"]).sum().item<int64_t>();
    count += batch->size();
  }
  return static_cast<double>(right) / static_cast<double>(count);
}

}  // namespace

TEST_SUITE_BEGIN("data/glyphs");

TEST_CASE("glyphs are images in [0, 1] with ink, of ten classes in turn") {
  const Glyphs glyphs({50});
  CHECK(glyphs.size() == 50);
  for (int64_t i = 0; i < 50; ++i) {
    const Sample sample = glyphs.get(i);
    const at::Tensor& image = sample["image"];
    REQUIRE(image.sizes() == at::IntArrayRef({1, 28, 28}));
    REQUIRE((image.scalar_type() == at::kFloat));
    CHECK(image.min().item<float>() >= 0.0F);
    CHECK(image.max().item<float>() <= 1.0F);
    CHECK(image.gt(0.5).sum().item<int64_t>() > 15);
    CHECK(sample["label"].dim() == 0);
    CHECK(sample["label"].item<int64_t>() == i % 10);
  }
  CHECK_THROWS_AS(glyphs.get(50), UsageError);
  CHECK(glyphs.facts().classes == 10);
  CHECK(glyphs.facts().image_shape == std::vector<int64_t>{1, 28, 28});
}

TEST_CASE("a glyph is a pure function of seed, split and index") {
  const at::Tensor base = images({30});
  CHECK(equal_bytes(base, images({30})));
  CHECK(equal_bytes(base, images({60}).slice(0, 0, 30).contiguous()));
  CHECK(!equal_bytes(base, images({30, "val"})));
  CHECK(!equal_bytes(base, images({30, "train", 1})));
}

TEST_CASE("without distortion, rotation and noise a shape is always drawn alike") {
  Glyphs::Options plain{300};
  plain.max_rotation_deg = 0;
  plain.distortion = 0;
  plain.noise = 0;
  const at::Tensor zeros = images(plain).slice(0, 0, 300, 10).flatten(1);
  const at::Tensor shapes = zeros.gt(0.5 * zeros.amax(1, true)).to(at::kFloat);  // any tone of ink
  CHECK(std::get<0>(at::unique_dim(shapes, 0)).size(0) <= 3);
}

TEST_CASE("options out of range are refused") {
  CHECK_THROWS_AS(Glyphs({0}), UsageError);
  CHECK_THROWS_AS(Glyphs({1, "test"}), UsageError);
  CHECK_THROWS_AS(Glyphs({1, "val", 0, 181.0}), UsageError);
  CHECK_THROWS_AS(Glyphs({1, "val", 0, 15.0, -1.0}), UsageError);
  CHECK_THROWS_AS(Glyphs({1, "val", 0, 15.0, 1.0, 2.0}), UsageError);
}

TEST_CASE("an MLP learns them well in 1000 steps, and not perfectly") {
  LoaderOptions options;
  options.batch_size = 64;
  const DataLoader val(use<Glyphs>({2000, "val"}), options);
  options.shuffle = true;
  const DataLoader train(use<Glyphs>({8000, "train"}), options);
  torch::manual_seed(1);
  torch::nn::Sequential model(torch::nn::Flatten(),
                              torch::nn::Linear(784, 256),
                              torch::nn::ReLU(),
                              torch::nn::Linear(256, 10));
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(2e-3));
  for (int64_t epoch = 0; epoch < 8; ++epoch) {
    const auto stream = train.stream({epoch, 0}, 1);
    while (auto batch = stream->next()) {
      optimizer.zero_grad();
      torch::nn::functional::cross_entropy(model->forward((*batch)["image"]), (*batch)["label"])
          .backward();
      optimizer.step();
    }
  }
  const double reached = accuracy(model, val);
  MESSAGE("validation accuracy " << reached);
  CHECK(reached > 0.97);
  CHECK(reached < 0.999);
}

TEST_SUITE_END();
