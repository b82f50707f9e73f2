#include <doctest/doctest.h>
#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/error.h"
#include "metrics/metric.h"
#include "models/builtin/deep_resnet.h"
#include "models/builtin/diffusion.h"
#include "models/builtin/mobile_net.h"
#include "models/builtin/u_net.h"
#include "models/builtin/vit.h"
#include "models/losses/losses.h"
#include "models/model_checks.h"

// The networks of images that are larger than those of Cnn and ResNet.

using namespace rondo;

TEST_SUITE_BEGIN("models/image_models");

namespace {

int64_t parameters_of(Model& model) {
  int64_t count = 0;
  for (const at::Tensor& parameter : model.module().parameters()) {
    count += parameter.numel();
  }
  return count;
}

/// That these are names of parameters or buffers, with these shapes.
void check_names(Model& model,
                 const std::vector<std::pair<std::string, std::vector<int64_t>>>& names) {
  const auto parameters = model.module().named_parameters();
  const auto buffers = model.module().named_buffers();
  for (const auto& [name, shape] : names) {
    CAPTURE(name);
    const at::Tensor* found = parameters.find(name);
    found = found != nullptr ? found : buffers.find(name);
    REQUIRE(found != nullptr);
    CHECK(found->sizes() == at::IntArrayRef(shape));
  }
}

}  // namespace

TEST_CASE("ResNet-18 and -50 have torchvision's parameters") {
  DeepResNet::Options options;
  options.classes = 1000;
  DeepResNet small(options);
  CHECK(parameters_of(small) == 11'689'512);
  CHECK(small.module().named_parameters().size() == 62);
  check_names(small,
              {{"conv1.weight", {64, 3, 7, 7}},
               {"bn1.running_mean", {64}},
               {"layer1.0.conv1.weight", {64, 64, 3, 3}},
               {"layer2.0.downsample.0.weight", {128, 64, 1, 1}},
               {"layer2.0.downsample.1.num_batches_tracked", {}},
               {"layer4.1.bn2.bias", {512}},
               {"fc.weight", {1000, 512}}});
  options.depth = 50;
  DeepResNet large(options);
  CHECK(parameters_of(large) == 25'557'032);
  CHECK(large.module().named_parameters().size() == 161);
  check_names(large,
              {{"layer1.0.conv3.weight", {256, 64, 1, 1}},
               {"layer1.0.downsample.0.weight", {256, 64, 1, 1}},
               {"layer3.5.bn3.weight", {1024}},
               {"fc.weight", {1000, 2048}}});
}

TEST_CASE("MobileNetV2 and ViT-B/16 have torchvision's parameters") {
  MobileNet::Options mobile;
  mobile.classes = 1000;
  MobileNet net(mobile);
  CHECK(parameters_of(net) == 3'504'872);
  CHECK(net.module().named_parameters().size() == 158);
  check_names(net,
              {{"features.0.0.weight", {32, 3, 3, 3}},
               {"features.1.conv.0.0.weight", {32, 1, 3, 3}},
               {"features.1.conv.1.weight", {16, 32, 1, 1}},
               {"features.2.conv.2.weight", {24, 96, 1, 1}},
               {"features.17.conv.3.running_var", {320}},
               {"features.18.1.weight", {1280}},
               {"classifier.1.weight", {1000, 1280}}});
  Vit::Options options;
  options.image_size = 224;
  options.patch = 16;
  options.classes = 1000;
  options.layers = 12;
  options.heads = 12;
  options.width = 768;
  Vit vit(options);
  CHECK(parameters_of(vit) == 86'567'656);
  CHECK(vit.module().named_parameters().size() == 152);
  check_names(vit,
              {{"class_token", {1, 1, 768}},
               {"conv_proj.weight", {768, 3, 16, 16}},
               {"encoder.pos_embedding", {1, 197, 768}},
               {"encoder.layers.encoder_layer_0.ln_1.weight", {768}},
               {"encoder.layers.encoder_layer_11.self_attention.in_proj_weight", {2304, 768}},
               {"encoder.layers.encoder_layer_0.self_attention.out_proj.bias", {768}},
               {"encoder.layers.encoder_layer_0.mlp.0.weight", {3072, 768}},
               {"encoder.layers.encoder_layer_0.mlp.3.weight", {768, 3072}},
               {"encoder.ln.weight", {768}},
               {"heads.head.weight", {1000, 768}}});
}

TEST_CASE("classifiers of images learn, for large images and small ones") {
  DeepResNet::Options resnet;
  resnet.width = 4;
  resnet.classes = 3;
  resnet.stem = "cifar";
  const Batch batch = test::image_batch({4, 3, 16, 16}, 3);
  for (const int64_t depth : {18, 50}) {
    resnet.depth = depth;
    test::check_model(use<DeepResNet>(resnet), batch, "label", 0.02);
  }
  MobileNet::Options mobile;
  mobile.classes = 3;
  mobile.width = 0.25;
  mobile.stem = "cifar";
  mobile.dropout = 0;
  test::check_model(use<MobileNet>(mobile), batch, "label", 0.05);
  Vit::Options vit;
  vit.image_size = 16;
  vit.classes = 3;
  vit.layers = 2;
  vit.heads = 2;
  vit.width = 16;
  test::check_model(use<Vit>(vit), batch, "label", 0.1);
  resnet.stem = "imagenet";
  resnet.depth = 18;
  DeepResNet large(resnet);
  CHECK((large.forward(test::image_batch({2, 3, 64, 64}, 3))["logits"].sizes() ==
         at::IntArrayRef({2, 3})));
}

TEST_CASE("a U-Net learns a class for each place of signals, images and volumes") {
  const std::vector<std::vector<int64_t>> shapes = {{16}, {8, 12}, {4, 8, 4}};
  for (size_t dims = 1; dims <= 3; ++dims) {
    CAPTURE(dims);
    UNet::Options options;
    options.dims = static_cast<int64_t>(dims);
    options.channels = 2;
    options.classes = 3;
    options.width = 4;
    options.depth = 2;
    std::vector<int64_t> mask = shapes[dims - 1];
    mask.insert(mask.begin(), 3);
    std::vector<int64_t> image = mask;
    image.insert(image.begin() + 1, 2);
    torch::manual_seed(1);
    const Batch batch = {{"image", torch::randn(image)},
                         {"mask", torch::randint(3, mask, torch::kLong)}};
    test::check_model(use<UNet>(options), batch, "mask", 0.2);
    mask.push_back(3);
    UNet net(options);
    CHECK(net.forward(batch)["logits"].sizes() == at::IntArrayRef(mask));
    REQUIRE(net.metrics().size() == 2);
    CHECK(net.metrics()[1].make()->name() == "iou");
  }
}

TEST_CASE("a U-Net takes losses of overlap, of shares and of values, and each norm") {
  torch::manual_seed(1);
  const auto image = torch::randn({2, 1, 8, 8});
  UNet::Options options;
  options.width = 8;
  options.depth = 1;
  for (const char* norm : {"batch", "group", "none"}) {
    CAPTURE(std::string(norm));
    options.norm = norm;
    options.classes = 2;
    options.loss = use<DiceLoss>();
    const Batch classes = {{"image", image}, {"mask", image.squeeze(1).gt(0).to(torch::kLong)}};
    if (options.norm == "none") {  // whose first steps are small
      UNet net(options);
      net.forward(classes)["loss"].backward();
      for (const at::Tensor& parameter : net.module().parameters()) {
        CHECK(parameter.grad().abs().sum().item<double>() > 0);
      }
    } else {
      test::check_model(use<UNet>(options), classes, "mask", 0.5);
    }
    options.classes = 1;
    options.loss = use<BinaryCrossEntropyLoss>();
    const Batch shares = {{"image", image}, {"mask", image.squeeze(1).sigmoid()}};
    UNet of_shares(options);
    CHECK(of_shares.forward(shares)["logits"].sizes() == at::IntArrayRef({2, 8, 8}));
    options.loss = use<MseLoss>();
    UNet of_values(options);
    CHECK(of_values.forward(shares)["prediction"].sizes() == at::IntArrayRef({2, 8, 8}));
  }
  CHECK_THROWS_AS(UNet(options).forward({{"image", torch::zeros({2, 1, 7, 8})}}), ShapeError);
  CHECK_THROWS_AS(UNet(options).forward({{"image", torch::zeros({2, 3, 8, 8})}}), ShapeError);
}

TEST_CASE(
    "a diffusion model learns noise, evaluates the same twice, and makes images from a seed") {
  Diffusion::Options options;
  options.image_size = 8;
  options.width = 8;
  options.depth = 1;
  options.steps = 10;
  for (const char* schedule : {"cosine", "linear"}) {
    options.schedule = schedule;
    torch::manual_seed(1);
    Diffusion model(options);
    const Batch batch = {{"image", torch::rand({4, 1, 8, 8})}};
    const Outputs first = model.forward(batch);
    CHECK(first["loss"].dim() == 0);
    CHECK(!model.forward(batch)["loss"].equal(first["loss"]));
    first["loss"].backward();
    for (const auto& item : model.module().named_parameters()) {
      CAPTURE(item.key());
      REQUIRE(item.value().grad().defined());
      CHECK(item.value().grad().isfinite().all().item<bool>());
    }
    const auto images = model.sample(3, 7);
    CHECK(model.module().is_training());
    CHECK(images.sizes() == at::IntArrayRef({3, 1, 8, 8}));
    CHECK((images.ge(0).logical_and(images.le(1))).all().item<bool>());
    CHECK(model.sample(3, 7).equal(images));
    CHECK(!model.sample(3, 8).equal(images));
    model.module().eval();
    CHECK(model.forward(batch)["loss"].equal(model.forward(batch)["loss"]));
    const auto left = model.module().named_buffers()["left"];
    CHECK((left.diff() < 0).all().item<bool>());
    CHECK(left[-1].item<double>() < 0.1);
  }
}

TEST_CASE("options of image models out of range are refused") {
  DeepResNet::Options resnet;
  resnet.depth = 20;
  CHECK_THROWS_AS(DeepResNet{resnet}, UsageError);
  resnet = {};
  resnet.stem = "none";
  CHECK_THROWS_AS(DeepResNet{resnet}, UsageError);
  MobileNet::Options mobile;
  mobile.width = 0;
  CHECK_THROWS_AS(MobileNet{mobile}, UsageError);
  Vit::Options vit;
  vit.image_size = 30;
  CHECK_THROWS_AS(Vit{vit}, UsageError);
  vit = {};
  vit.heads = 3;
  CHECK_THROWS_AS(Vit{vit}, UsageError);
  UNet::Options u_net;
  u_net.dims = 4;
  CHECK_THROWS_AS(UNet{u_net}, UsageError);
  u_net = {};
  u_net.norm = "group";
  u_net.width = 4;
  CHECK_THROWS_AS(UNet{u_net}, UsageError);
  Diffusion::Options diffusion;
  diffusion.image_size = 30;
  CHECK_THROWS_AS(Diffusion{diffusion}, UsageError);
}

TEST_SUITE_END();
