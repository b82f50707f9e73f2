// Changes of layers against what they stand for, computed by hand.

#include "callbacks/algorithms/algorithms.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/group_norm.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <doctest/doctest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/modules/pooling.h>
#include <torch/types.h>

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "callbacks/core/forward_pass.h"
#include "core/error.h"
#include "core/glob.h"
#include "data/tensor_dataset.h"
#include "models/builtin/resnet.h"
#include "models/from_module.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace nn = torch::nn;

namespace {

constexpr int64_t kChannels = 4;

at::Tensor sine_images() {
  return at::arange(6 * kChannels * 8 * 8, at::kFloat).sin().reshape({6, kChannels, 8, 8});
}

/// A Trainer of a module, whose output is what the loss sees.
template <class Make>
TrainerOptions options_for(const TempDir& dir, Make make, const Factory<Algorithm>& algorithm) {
  TrainerOptions options = tiny_options(dir / "run");
  options.model = from_module(
      make, "image", [](const at::Tensor& output, const Batch&) { return output.square().mean(); });
  options.algorithms = {algorithm};
  return options;
}

/// The output of the model as a step computes it.
at::Tensor output_of(Trainer& trainer, const at::Tensor& image) {
  const Batch batch{{"image", image}};
  Model& model = *trainer.state().model;
  const ForwardScope changes(trainer.step_slots().algorithms->forward_changes());
  return model.forward(batch)["logits"];
}

at::Tensor parameter(Trainer& trainer, const std::string& name) {
  return trainer.state().model->module().named_parameters()[name];
}

bool is_near_of_same_sizes(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && at::allclose(a, b, 1e-4, 1e-5);
}

nn::Sequential one_conv() {
  return nn::Sequential(
      nn::Conv2d(nn::Conv2dOptions(kChannels, kChannels, /*kernel_size=*/3).stride(2).padding(1)));
}

/// Halves what the batch norms of some stages give.
class HalfNorm final : public LayerSurgery {
 protected:
  void change(torch::nn::Module& model) override {
    for (const auto& item : model.named_modules("", /*include_self=*/false)) {
      const bool is_norm = item.value()->as<torch::nn::BatchNorm2dImpl>() != nullptr;
      if (is_norm && glob_match("stage*", item.key())) {
        replace(*item.value(), [](const LayerCall& layer) { return layer(layer.input()) * 0.5; });
      }
    }
  }
};

}  // namespace

TEST_SUITE_BEGIN("callbacks/algorithms/surgeries");

TEST_CASE("BlurPool blurs the input of a convolution with a stride") {
  const TempDir dir;
  BlurPool::Options options;
  options.min_channels = kChannels;
  Trainer trainer(options_for(dir, one_conv, use<BlurPool>(options)), quiet_log());
  const at::Tensor line = at::tensor({0.25, 0.5, 0.25}, at::kFloat);
  const at::Tensor filter = line.unsqueeze(1).mul(line).expand({kChannels, 1, 3, 3}).contiguous();
  const at::Tensor blurred = at::conv2d(sine_images(), filter, {}, 1, 1, 1, kChannels);
  const at::Tensor expected =
      at::conv2d(blurred, parameter(trainer, "0.weight"), parameter(trainer, "0.bias"), 2, 1);
  CHECK(is_near_of_same_sizes(output_of(trainer, sine_images()), expected));
  // Outside of a step the layer is what it was.
  const at::Tensor plain =
      at::conv2d(sine_images(), parameter(trainer, "0.weight"), parameter(trainer, "0.bias"), 2, 1);
  CHECK(is_near_of_same_sizes(trainer.state().model->forward({{"image", sine_images()}})["logits"],
                              plain));
}

TEST_CASE("BlurPool blurs what a max pool gives before its stride") {
  const TempDir dir;
  BlurPool::Options options;
  options.min_channels = 1;
  options.replace_convs = false;
  const auto make = [] {
    return nn::Sequential(nn::Conv2d(nn::Conv2dOptions(kChannels, 2, 1)),
                          nn::MaxPool2d(nn::MaxPool2dOptions(2)));
  };
  Trainer trainer(options_for(dir, make, use<BlurPool>(options)), quiet_log());
  const at::Tensor inner =
      at::conv2d(sine_images(), parameter(trainer, "0.weight"), parameter(trainer, "0.bias"));
  const at::Tensor line = at::tensor({0.25, 0.5, 0.25}, at::kFloat);
  const at::Tensor filter = line.unsqueeze(1).mul(line).expand({2, 1, 3, 3}).contiguous();
  const at::Tensor expected =
      at::conv2d(at::max_pool2d(inner, 2, /*stride=*/1), filter, {}, 2, 1, 1, 2);
  CHECK(is_near_of_same_sizes(output_of(trainer, sine_images()), expected));
}

TEST_CASE("SqueezeExcite weighs channels, by parameters that are trained and saved") {
  const TempDir dir;
  SqueezeExcite::Options options;
  options.min_channels = kChannels;
  options.latent_channels = 2;
  Trainer trainer(options_for(dir, one_conv, use<SqueezeExcite>(options)), quiet_log());
  const at::Tensor plain =
      at::conv2d(sine_images(), parameter(trainer, "0.weight"), parameter(trainer, "0.bias"), 2, 1);
  const at::Tensor latent = at::relu(at::linear(plain.mean({2, 3}),
                                                parameter(trainer, "0.squeeze.weight"),
                                                parameter(trainer, "0.squeeze.bias")));
  const at::Tensor weights = at::sigmoid(at::linear(
      latent, parameter(trainer, "0.excite.weight"), parameter(trainer, "0.excite.bias")));
  CHECK(is_near_of_same_sizes(output_of(trainer, sine_images()),
                              plain * weights.unsqueeze(-1).unsqueeze(-1)));
  const NamedTensors& trained = trainer.state().optimizer->trained();
  CHECK(std::any_of(trained.begin(), trained.end(), [](const NamedTensor& item) {
    return item.first == "0.squeeze.weight";
  }));
}

TEST_CASE("GhostBatchNorm normalizes parts by themselves in training, and not in evaluation") {
  const TempDir dir;
  const auto make = [] { return nn::Sequential(nn::BatchNorm2d(kChannels)); };
  Trainer trainer(options_for(dir, make, use<GhostBatchNorm>({4})), quiet_log());
  std::vector<at::Tensor> parts;
  for (const at::Tensor& part : sine_images().split(4)) {
    const auto [variance, mean] = at::var_mean(part, {0, 2, 3}, /*unbiased=*/false, true);
    parts.push_back((part - mean) / (variance + 1e-5).sqrt());
  }
  CHECK(is_near_of_same_sizes(output_of(trainer, sine_images()), at::cat(parts)));
  trainer.state().model->module().eval();
  const at::Tensor evaluated = output_of(trainer, sine_images());
  CHECK(is_near_of_same_sizes(
      evaluated, trainer.state().model->forward({{"image", sine_images()}})["logits"]));
}

TEST_CASE("a part that is larger than a batch is a warning") {
  for (const int64_t size : {2, 3}) {
    CAPTURE(size);
    const TempDir dir;
    std::vector<std::string> lines;
    TrainerOptions options = tiny_options(dir / "run");
    options.model = from_module(
        [] { return nn::Sequential(nn::Linear(4, 4), nn::BatchNorm1d(4), nn::Linear(4, 3)); },
        "x",
        cross_entropy("label"));
    options.algorithms = {use<GhostBatchNorm>({size})};
    options.loop.max_steps = 1;
    Trainer(options, quiet_log(&lines)).fit(tiny_loader("train"));
    const bool is_told = std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
      return line.find("ghost_batch_size = 3; set it to at most 2") != std::string::npos;
    });
    CHECK(is_told == (size == 3));
  }
}

TEST_CASE("WeightStandardization gives each output channel's weights mean 0 and variance 1") {
  const TempDir dir;
  Trainer trainer(options_for(dir, one_conv, use<WeightStandardization>()), quiet_log());
  const at::Tensor weight = parameter(trainer, "0.weight");
  const auto [variance, mean] = at::var_mean(weight, {1, 2, 3}, /*unbiased=*/false, true);
  const at::Tensor expected = at::conv2d(
      sine_images(), (weight - mean) / variance.sqrt(), parameter(trainer, "0.bias"), 2, 1);
  CHECK(is_near_of_same_sizes(output_of(trainer, sine_images()), expected));
}

TEST_CASE("Factorize begins with the best split of what a layer computes") {
  const TempDir dir;
  Factorize::Options options;
  options.min_features = 6;
  options.latent_features = 3;
  options.min_channels = kChannels;
  options.latent_channels = 3;
  const auto make = [] { return nn::Sequential(nn::Linear(8, 6)); };
  Trainer linear(options_for(dir, make, use<Factorize>(options)), quiet_log());
  const at::Tensor input = at::arange(24, at::kFloat).cos().reshape({3, 8});
  const at::Tensor product =
      parameter(linear, "0.factor_out").matmul(parameter(linear, "0.factor_in"));
  const at::Tensor weight = parameter(linear, "0.weight");
  const auto [u, s, v] = at::linalg_svd(weight.detach(), false);
  const at::Tensor best = u.narrow(1, 0, 3).mul(s.narrow(0, 0, 3)).matmul(v.narrow(0, 0, 3));
  CHECK(is_near_of_same_sizes(product, best));
  CHECK_FALSE(weight.requires_grad());
  CHECK(is_near_of_same_sizes(output_of(linear, input),
                              at::linear(input, best, parameter(linear, "0.bias"))));
  const TempDir other;
  Trainer conv(options_for(other, one_conv, use<Factorize>(options)), quiet_log());
  const at::Tensor both =
      at::conv2d(at::conv2d(sine_images(), parameter(conv, "0.factor_in"), {}, 2, 1),
                 parameter(conv, "0.factor_out"),
                 parameter(conv, "0.bias"));
  CHECK(is_near_of_same_sizes(output_of(conv, sine_images()), both));
}

TEST_CASE("StochasticDepth leaves a branch out for a batch, and scales it in evaluation") {
  const TempDir dir;
  StochasticDepth::Options options;
  options.layers = {"0"};
  options.drop_rate = 0.25;
  Trainer trainer(options_for(dir, one_conv, use<StochasticDepth>(options)), quiet_log());
  const at::Tensor plain = trainer.state().model->forward({{"image", sine_images()}})["logits"];
  int left_out = 0;
  constexpr int kTimes = 400;
  for (int i = 0; i < kTimes; ++i) {
    const at::Tensor output = output_of(trainer, sine_images());
    const bool is_out = output.count_nonzero().item<int64_t>() == 0;
    left_out += is_out ? 1 : 0;
    REQUIRE((is_out || output.equal(plain)));
  }
  CHECK(left_out > kTimes * 0.15);  // 4.6 standard deviations from 0.25 with a fixed seed
  CHECK(left_out < kTimes * 0.35);
  trainer.state().model->module().eval();
  CHECK(is_near_of_same_sizes(output_of(trainer, sine_images()), plain * 0.75));
}

TEST_CASE("StochasticDepth leaves branches out for single samples, the later ones more often") {
  const TempDir dir;
  StochasticDepth::Options options;
  options.layers = {"*"};
  options.stochastic_method = "sample";
  options.drop_rate = 0.5;
  const auto make = [] {
    return nn::Sequential(nn::Conv2d(nn::Conv2dOptions(kChannels, kChannels, 1)),
                          nn::Conv2d(nn::Conv2dOptions(kChannels, kChannels, 1)));
  };
  Trainer trainer(options_for(dir, make, use<StochasticDepth>(options)), quiet_log());
  std::vector<bool> kinds(2);
  for (int i = 0; i < 20; ++i) {
    const at::Tensor output = output_of(trainer, sine_images());
    for (int64_t sample = 0; sample < output.size(0); ++sample) {
      kinds[output[sample].count_nonzero().item<int64_t>() == 0 ? 0 : 1] = true;
    }
  }
  CHECK((kinds[0] && kinds[1]));
  trainer.state().model->module().eval();
  const at::Tensor first =
      at::conv2d(sine_images(), parameter(trainer, "0.weight"), parameter(trainer, "0.bias"));
  const at::Tensor second =
      at::conv2d(first * 0.75, parameter(trainer, "1.weight"), parameter(trainer, "1.bias"));
  CHECK(is_near_of_same_sizes(output_of(trainer, sine_images()), second * 0.5));
}

TEST_CASE("StochasticDepth without a branch of that name is refused") {
  const TempDir dir;
  try {
    const Trainer trainer(options_for(dir, one_conv, use<StochasticDepth>()), quiet_log());
    FAIL("nothing was thrown");
  } catch (const std::exception&) {
    CHECK(describe(std::current_exception()).find("stage*_block*.norm2") != std::string::npos);
  }
}

TEST_CASE("GyroDropout gives samples of a batch the masks in turn, and keeps them") {
  const TempDir dir;
  GyroDropout::Options options;
  options.sigma = 4;
  options.tau = 2;
  const auto make = [] { return nn::Sequential(nn::Dropout(0.9), nn::Linear(64, 64)); };
  Trainer trainer(options_for(dir, make, use<GyroDropout>(options)), quiet_log());
  const at::Tensor ones = at::ones({6, 64});
  parameter(trainer, "1.weight").detach().copy_(at::eye(64));  // gives what it gets
  parameter(trainer, "1.bias").detach().zero_();
  const NamedTensors own = trainer.callback<GyroDropout>()->captured_state();
  own.front().second.copy_(at::tensor({3, 1}, at::kLong));
  const uint64_t seed = trainer.state().seed;
  const at::Tensor kept =
      GyroDropout::kept(at::tensor({3, 3, 3, 1, 1, 1}, at::kLong), 64, 0, seed, 0.5);
  const at::Tensor output = output_of(trainer, ones);
  CHECK(output.equal(kept.to(at::kFloat) * 2.0));
  CHECK(output.equal(output_of(trainer, ones)));
  CHECK_FALSE(output[0].equal(output[3]));
  const at::Tensor many = GyroDropout::kept(at::arange(1000, at::kLong), 100, 1, seed, 0.3);
  CHECK(many.to(at::kDouble).mean().item<double>() == doctest::Approx(0.7).epsilon(0.01));
  const at::Tensor columns = many.to(at::kDouble).mean(0);
  CHECK(columns.min().item<double>() > 0.6);  // 7 standard deviations of 1000 draws
  CHECK(columns.max().item<double>() < 0.8);
  trainer.state().model->module().eval();
  CHECK(output_of(trainer, ones).equal(ones));
}

TEST_CASE("layers are what they were after a forward that throws, and for the next Trainer") {
  const TempDir dir;
  BlurPool::Options blur;
  blur.min_channels = kChannels;
  TrainerOptions options = options_for(dir, one_conv, use<BlurPool>(blur));
  options.model = from_module(one_conv, "image", [](const at::Tensor&, const Batch&) -> at::Tensor {
    throw std::runtime_error("no loss today");
  });
  options.backend.mode = "eager";
  Trainer trainer(options, quiet_log());
  const DataLoader data("train", from_tensors({{"image", sine_images()}}), {});
  CHECK_THROWS(trainer.fit(data));
  const at::Tensor weight = parameter(trainer, "0.weight").detach();
  const at::Tensor bias = parameter(trainer, "0.bias").detach();
  auto conv = trainer.state().model->module().named_children()["0"];
  const at::Tensor plain = at::conv2d(sine_images(), weight, bias, 2, 1);
  CHECK(conv->as<nn::Conv2dImpl>()->forward(sine_images()).equal(plain));
}

TEST_CASE("a change of one's own picks layers by class and name") {
  const TempDir dir;
  ResNet::Options resnet;
  resnet.blocks = 1;
  resnet.width = 4;
  resnet.channels = kChannels;
  TrainerOptions options = tiny_options(dir / "run");
  options.model = use<ResNet>(resnet);
  options.algorithms = {use<HalfNorm>()};
  Trainer trainer(options, quiet_log());
  const at::Tensor plain = trainer.state().model->forward({{"image", sine_images()}})["logits"];
  CHECK_FALSE(is_near_of_same_sizes(output_of(trainer, sine_images()), plain));
}

TEST_CASE("a change that finds no layer is refused") {
  const TempDir dir;
  try {
    const Trainer trainer(options_for(dir, one_conv, use<GhostBatchNorm>()), quiet_log());
    FAIL("nothing was thrown");
  } catch (const std::exception&) {
    CHECK(describe(std::current_exception()).find("GhostBatchNorm") != std::string::npos);
  }
}

TEST_CASE("with changed layers traced equals eager, two changes of one layer too") {
  BlurPool::Options blur;
  blur.min_channels = 2;
  SqueezeExcite::Options squeeze;
  squeeze.min_channels = 4;
  squeeze.latent_channels = 2;
  Factorize::Options factors;
  factors.min_channels = 4;
  factors.latent_channels = 3;
  const std::vector<std::vector<Factory<Algorithm>>> all = {
      {use<BlurPool>(blur)},
      {use<SqueezeExcite>(squeeze)},
      {use<GhostBatchNorm>({2})},
      {use<StochasticDepth>()},
      {use<Factorize>(factors)},
      {use<WeightStandardization>(), use<BlurPool>(blur)}};
  const auto fit =
      [](const TempDir& dir, const std::vector<Factory<Algorithm>>& algorithms, const char* mode) {
        ResNet::Options resnet;
        resnet.blocks = 1;
        resnet.width = 4;
        resnet.classes = 3;
        resnet.channels = kChannels;
        TrainerOptions options = tiny_options(dir / mode);
        options.model = use<ResNet>(resnet);
        options.algorithms = algorithms;
        options.backend.mode = mode;
        options.loop.max_steps = 6;
        LoaderOptions loader;
        loader.batch_size = 6;
        const DataLoader data(
            "train",
            from_tensors({{"image", sine_images()}, {"label", at::arange(6).remainder(3)}}),
            loader);
        Trainer trainer(options, quiet_log());
        trainer.fit(data, {data});
        return bits_of(trainer);
      };
  for (const auto& algorithms : all) {
    CAPTURE(algorithms.front().name());
    const TempDir dir;
    CHECK(first_difference(fit(dir, algorithms, "eager"), fit(dir, algorithms, "traced")) == "");
  }
}

TEST_CASE("norms in low precision compute in bfloat16, traced as eager") {
  const auto fit = [](const Factory<Algorithm>& algorithm, const char* mode, at::Tensor* seen) {
    const TempDir dir;
    TrainerOptions options = tiny_options(dir / "run");
    const bool has_groups = algorithm.name() == "LowPrecisionGroupNorm";
    options.model = from_module(
        [=] {
          nn::Sequential layers(nn::Linear(4, 8));
          if (has_groups) {
            layers->push_back(nn::GroupNorm(nn::GroupNormOptions(2, 8)));
          } else {
            layers->push_back(nn::LayerNorm(nn::LayerNormOptions({8})));
          }
          layers->push_back(nn::Linear(8, 3));
          return layers;
        },
        "x",
        cross_entropy("label"));
    options.precision.dtype = "bf16";
    options.algorithms = {algorithm};
    options.backend.mode = mode;
    options.loop.max_steps = 6;
    options.loop.eval_frequency = 0;
    Trainer trainer(options, quiet_log());
    trainer.fit(tiny_loader("train"));
    const at::Tensor x = at::arange(8, at::kFloat).sin().reshape({2, 4});
    Outputs outputs = forward_pass(trainer, {{"x", x}, {"label", at::zeros({2}, at::kLong)}});
    *seen = outputs["logits"].detach();
    const at::ScalarType narrow = at::kBFloat16;
    const auto of = [&](const char* name) { return parameter(trainer, name).detach().to(narrow); };
    const at::Tensor wide = at::linear(x.to(narrow), of("0.weight"), of("0.bias"));
    const at::Tensor normed = has_groups ? at::group_norm(wide, 2, of("1.weight"), of("1.bias"))
                                         : at::layer_norm(wide, {8}, of("1.weight"), of("1.bias"));
    CHECK((normed.scalar_type() == narrow));
    const at::Tensor expected = at::linear(normed, of("2.weight"), of("2.bias"));
    CHECK(at::allclose(seen->to(at::kFloat), expected.to(at::kFloat), 1e-2, 1e-2));
    return bits_of(trainer);
  };
  const std::vector<Factory<Algorithm>> all = {use<LowPrecisionLayerNorm>(),
                                               use<LowPrecisionGroupNorm>()};
  for (const Factory<Algorithm>& algorithm : all) {
    CAPTURE(algorithm.name());
    at::Tensor eager;
    at::Tensor traced;
    CHECK(first_difference(fit(algorithm, "eager", &eager), fit(algorithm, "traced", &traced)) ==
          "");
    CHECK(eager.equal(traced));
  }
}

TEST_CASE("with GyroDropout traced equals eager, while masks change") {
  GyroDropout::Options gyro;
  gyro.sigma = 6;
  gyro.tau = 2;
  const auto fit = [&](const TempDir& dir, const char* mode) {
    TrainerOptions options = tiny_options(dir / mode);
    options.model = from_module(
        [] {
          return nn::Sequential(nn::Linear(4, 8),
                                nn::Dropout(0.5),
                                nn::Linear(8, 8),
                                nn::Dropout(),
                                nn::Linear(8, 3));
        },
        "x",
        cross_entropy("label"));
    options.algorithms = {use<GyroDropout>(gyro)};
    options.backend.mode = mode;
    options.loop.max_steps = 9;
    Trainer trainer(options, quiet_log());
    trainer.fit(tiny_loader("train"));
    return bits_of(trainer);
  };
  const TempDir dir;
  CHECK(first_difference(fit(dir, "eager"), fit(dir, "traced")) == "");
}

TEST_SUITE_END();
