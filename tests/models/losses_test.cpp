#include "models/losses/losses.h"

#include <doctest/doctest.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/error.h"
#include "metrics/metric.h"
#include "models/builtin/mlp.h"
#include "models/forward_error.h"
#include "models/from_module.h"
#include "models/losses/loss_option.h"
#include "models/losses/register.h"
#include "models/register.h"

using namespace rondo;

TEST_SUITE_BEGIN("models/losses");

namespace {

namespace F = torch::nn::functional;

/// Logits whose softmax is these shares.
at::Tensor logits_of(const std::vector<double>& shares, at::IntArrayRef sizes) {
  return torch::tensor(shares, torch::kDouble).log().view(sizes);
}

double number(const at::Tensor& loss) {
  CHECK(loss.dim() == 0);
  return loss.item<double>();
}

constexpr double kTolerance = 1e-12;  // float64, a few operators

doctest::Approx near(double value) {
  return doctest::Approx(value).epsilon(kTolerance);
}

at::Tensor numbers(const std::vector<double>& values) {
  return torch::tensor(values, torch::kDouble);
}

}  // namespace

TEST_CASE("cross entropy: smoothed labels, class weights and ignored labels by hand") {
  const auto logits = logits_of({0.7, 0.2, 0.1, 0.1, 0.3, 0.6, 0.5, 0.25, 0.25}, {3, 3});
  const auto labels = torch::tensor({0, 2, -100}, torch::kLong);
  CHECK(number(CrossEntropyLoss().mean(logits, labels)) ==
        near(-(std::log(0.7) + std::log(0.6)) / 2));

  CrossEntropyLoss::Options options;
  options.label_smoothing = 0.3;
  const double first =
      -(0.7 * std::log(0.7) + 0.1 * (std::log(0.7) + std::log(0.2) + std::log(0.1)));
  const double second =
      -(0.7 * std::log(0.6) + 0.1 * (std::log(0.1) + std::log(0.3) + std::log(0.6)));
  CHECK(number(CrossEntropyLoss(options).mean(logits, labels)) == near((first + second) / 2));

  options.label_smoothing = 0;
  options.class_weights = {1.0, 5.0, 3.0};
  CHECK(number(CrossEntropyLoss(options).mean(logits, labels)) ==
        near(-(1.0 * std::log(0.7) + 3.0 * std::log(0.6)) / 4));

  options.class_weights = {};
  options.ignore_index = 2;
  CHECK(number(CrossEntropyLoss(options).mean(logits, torch::tensor({0, 2, 1}))) ==
        near(-(std::log(0.7) + std::log(0.25)) / 2));
}

TEST_CASE("cross entropy equals LibTorch's with all options together, and by rows of a sequence") {
  torch::manual_seed(4);
  const auto logits = torch::randn({6, 5}, torch::kDouble);
  const auto labels = torch::tensor({0, 4, 2, -100, 1, 1});
  const std::vector<double> weights = {0.5, 1.0, 2.0, 1.0, 3.0};
  CrossEntropyLoss::Options options;
  options.label_smoothing = 0.1;
  options.class_weights = weights;
  const auto expected = F::cross_entropy(
      logits, labels, F::CrossEntropyFuncOptions().label_smoothing(0.1).weight(numbers(weights)));
  const CrossEntropyLoss loss(options);
  CHECK(number(loss.mean(logits, labels)) == near(number(expected)));
  CHECK(number(loss.mean(logits.view({2, 3, 5}), labels.view({2, 3}))) == near(number(expected)));
  CHECK(CrossEntropyLoss().mean(logits, labels).equal(F::cross_entropy(logits, labels)));
}

TEST_CASE("focal: a sure label counts less, by hand; with gamma 0 it is cross entropy") {
  const auto logits = logits_of({0.9, 0.1, 0.4, 0.6}, {2, 2});
  const auto labels = torch::tensor({0, 0});
  const double sure = -0.1 * 0.1 * std::log(0.9);
  const double unsure = -0.6 * 0.6 * std::log(0.4);
  CHECK(number(FocalLoss(FocalLoss::Options()).mean(logits, labels)) == near((sure + unsure) / 2));
  CHECK(number(FocalLoss({2.0, {0.25, 0.75}}).mean(logits, torch::tensor({0, 1}))) ==
        near(-(0.25 * 0.01 * std::log(0.9) + 0.75 * 0.16 * std::log(0.6)) / 2));
  CHECK(number(FocalLoss({0.0}).mean(logits, labels)) ==
        near(number(CrossEntropyLoss().mean(logits, labels))));
  CHECK(number(FocalLoss({2.0}).mean(logits, torch::tensor({0, -100}))) == near(sure));
  CHECK_THROWS_AS(FocalLoss({0.5}), UsageError);
}

TEST_CASE("dice: overlap of shares and labels in each sample, by hand") {
  // Two places of one sample: the shares of class 1 are 0.8 and 0.4; only the first is labelled 1.
  const auto logits = logits_of({0.2, 0.8, 0.6, 0.4}, {1, 2, 2});
  const auto labels = torch::tensor({1, 0}).view({1, 2});
  DiceLoss::Options options;
  options.smooth = 0.5;
  const double of_0 = (2 * 0.6 + 0.5) / (0.2 + 0.6 + 1.0 + 0.5);
  const double of_1 = (2 * 0.8 + 0.5) / (0.8 + 0.4 + 1.0 + 0.5);
  CHECK(number(DiceLoss(options).mean(logits, labels)) == near(1 - (of_0 + of_1) / 2));
  options.background = false;
  CHECK(number(DiceLoss(options).mean(logits, labels)) == near(1 - of_1));
  const double alone = (2 * 0.8 + 0.5) / (0.8 + 1.0 + 0.5);
  CHECK(number(DiceLoss(options).mean(logits, torch::tensor({1, -100}).view({1, 2}))) ==
        near(1 - alone));
  CHECK(number(DiceLoss(options).mean(logits.view({1, 1, 2, 2}), labels.view({1, 1, 2}))) ==
        near(1 - of_1));
}

TEST_CASE("losses of values by hand") {
  const auto output = numbers({1.0, 2.0, -1.0});
  const auto target = numbers({1.5, 2.0, 2.0});
  CHECK(number(MseLoss().mean(output, target)) == near((0.25 + 9.0) / 3));
  CHECK(number(L1Loss().mean(output, target)) == near(3.5 / 3));
  CHECK(number(HuberLoss({1.0}).mean(output, target)) == near((0.125 + 2.5) / 3));
  CHECK(number(HuberLoss({2.0}).mean(output, target)) == near((0.125 + 2.0 * (3.0 - 1.0)) / 3));
}

TEST_CASE("quantile: too low costs q, too high 1 - q, for one quantile and several") {
  const auto target = numbers({2.0, 2.0});
  CHECK(number(QuantileLoss({{0.9}}).mean(numbers({1.0, 3.0}), target)) == near((0.9 + 0.1) / 2));
  const auto output = numbers({1.0, 3.0, 2.0, 2.5}).view({2, 2});
  CHECK(number(QuantileLoss({{0.1, 0.5}}).mean(output, target)) ==
        near((0.1 * 1.0 + 0.5 * 1.0 + 0.0 + 0.5 * 0.5) / 4));
  CHECK(QuantileLoss({{0.1, 0.5}}).outputs_per_value() == 2);
  CHECK_THROWS_AS(QuantileLoss({{0.1, 0.5}}).mean(target, target), ShapeError);
  CHECK_THROWS_AS(QuantileLoss({{1.0}}), UsageError);
  CHECK_THROWS_AS(QuantileLoss(QuantileLoss::Options{{}}), UsageError);
}

TEST_CASE("binary cross entropy and divergence by hand") {
  const auto logits = numbers({std::log(3.0), 0.0});  // sigmoids 0.75 and 0.5
  CHECK(number(BinaryCrossEntropyLoss({}).mean(logits, numbers({1.0, 0.25}))) ==
        near(-(std::log(0.75) + std::log(0.5)) / 2));
  CHECK(number(BinaryCrossEntropyLoss({{3.0}}).mean(logits, torch::tensor({1, 0}))) ==
        near(-(3.0 * std::log(0.75) + std::log(0.5)) / 2));
  const auto shares = numbers({0.5, 0.5, 1.0, 0.0}).view({2, 2});
  const auto output = logits_of({0.25, 0.75, 0.8, 0.2}, {2, 2});
  const double first = 0.5 * std::log(0.5 / 0.25) + 0.5 * std::log(0.5 / 0.75);
  CHECK(number(KlLoss().mean(output, shares)) == near((first + std::log(1.0 / 0.8)) / 2));
  const BinaryCrossEntropyLoss plain({});
  CHECK(number(plain.mean(torch::tensor({1.0, 9.0, -2.0}), torch::tensor({1, -100, 0}))) ==
        number(plain.mean(torch::tensor({1.0, -2.0}), torch::tensor({1, 0}))));
}

TEST_CASE("weights of samples weigh every loss, together with those of classes") {
  const auto weights = numbers({1.0, 3.0});
  CHECK(number(L1Loss().mean(numbers({1, 5}), numbers({0, 0}), weights)) == near(16.0 / 4));
  const auto logits = logits_of({0.7, 0.3, 0.4, 0.6}, {2, 2});
  CrossEntropyLoss::Options options;
  options.class_weights = {2.0, 1.0};
  const auto loss = CrossEntropyLoss(options).mean(logits, torch::tensor({0, 1}), weights);
  CHECK(number(loss) == near(-(2 * std::log(0.7) + 3 * std::log(0.6)) / (2 + 3)));
  CHECK_THROWS_AS(L1Loss().mean(numbers({1, 5}), numbers({0, 0}), numbers({1})), ShapeError);
}

TEST_CASE("what does not go together is an error that names the target") {
  const auto text_of = [](auto call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  const auto logits = torch::zeros({2, 3});
  CHECK(has(text_of([&] { FocalLoss({2.0}).mean(logits, torch::zeros({2}), "kind"); }), "kind"));
  CHECK(has(text_of([&] { MseLoss().mean(logits, torch::zeros({2}), "price"); }), "price"));
  CHECK(has(text_of([&] { DiceLoss({1.0}).mean(logits, torch::tensor({1, 2, 0})); }), "[3]"));
  CHECK_THROWS_AS(CrossEntropyLoss().mean(logits, torch::tensor({1, 3})), ForwardError);
  CHECK_THROWS_AS(FocalLoss({2.0}).mean(logits, torch::tensor({1, 3})), ForwardError);
  CHECK_THROWS_AS(FocalLoss({2.0, {1.0}}).mean(logits, torch::tensor({1, 2})), ShapeError);
  CHECK_THROWS_AS(CrossEntropyLoss({1.0}), UsageError);
  CHECK_THROWS_AS(HuberLoss({0.0}), UsageError);
  CHECK_THROWS_AS(DiceLoss({0.0}), UsageError);
}

TEST_CASE("a config names the loss of a model by a word or with its options, and gets it back") {
  Registry<Criterion> losses("loss");
  register_builtin_losses(losses);
  for (const char* name :
       {"CrossEntropy", "BCE", "MSE", "L1", "Huber", "Quantile", "KL", "Focal", "Dice"}) {
    CAPTURE(std::string(name));
    REQUIRE(losses.find(name) != nullptr);
    std::vector<Fault> faults;
    FaultSink sink("", faults);
    const auto factory = LossOption(losses).read(ConfigValue(std::string(name)), sink);
    REQUIRE(faults.empty());
    CHECK(factory->make() != nullptr);
    CHECK(LossOption(losses).read(LossOption(losses).write(*factory), sink));
    CHECK(faults.empty());
  }
  std::vector<Fault> faults;
  FaultSink sink("", faults);
  LossOption(losses).read(ConfigValue(std::string("Vocal")), sink);
  REQUIRE(faults.size() == 1);
  CHECK(faults[0].message.find("Focal") != std::string::npos);
}

TEST_CASE("a model trains for the loss that it is given, and says what it measures then") {
  Mlp::Options options;
  options.sizes = {4, 3};
  options.loss = use<FocalLoss>({2.0});
  Mlp model(options);
  const Batch batch = {{"image", torch::rand({2, 4})}, {"label", torch::tensor({0, 2})}};
  const Outputs outputs = model.forward(batch);
  CHECK(outputs["loss"].equal(FocalLoss({2.0}).mean(outputs["logits"], batch["label"])));

  options.loss = use<MseLoss>();
  Mlp values(options);
  const Batch pairs = {{"image", torch::rand({2, 4})}, {"label", torch::rand({2, 3})}};
  const Outputs predicted = values.forward(pairs);
  CHECK(predicted["loss"].equal(at::mse_loss(predicted["prediction"], pairs["label"])));
  REQUIRE(values.metrics().size() == 1);
  CHECK(values.metrics()[0].make()->name() == "mean_squared_error");
}

TEST_CASE("losses in code are objects, and options of models") {
  const auto logits = torch::rand({2, 3});
  const auto labels = torch::tensor({0, 2});
  const auto make_net = [] { return torch::nn::Linear(4, 1); };
  Mlp::Options options;
  const at::Tensor loss = FocalLoss({2.0}).mean(logits, labels);
  options.loss = use<FocalLoss>({2.0});
  const auto model = from_module(make_net, "x", loss_of(use<HuberLoss>({1.0}), "target"));
  CHECK(options.loss.make()->mean(logits, labels).equal(loss));
  const Batch batch = {{"x", torch::rand({2, 4})}, {"target", torch::rand({2, 1})}};
  CHECK(model.make()->forward(batch)["loss"].dim() == 0);
}

TEST_CASE("a plain module takes any loss") {
  const auto factory = from_module(
      [] { return torch::nn::Linear(4, 3); }, "x", loss_of(use<FocalLoss>({2.0}), "label"));
  const auto model = factory.make();
  const Batch batch = {{"x", torch::rand({2, 4})}, {"label", torch::tensor({0, 2})}};
  const Outputs outputs = model->forward(batch);
  CHECK(outputs["loss"].equal(FocalLoss({2.0}).mean(outputs["logits"], batch["label"])));
}

TEST_SUITE_END();
