#include "models/builtin/table_mlp.h"

#include <doctest/doctest.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/error.h"
#include "core/registry.h"
#include "metrics/metric.h"
#include "models/losses/losses.h"
#include "models/losses/register.h"
#include "models/model_checks.h"
#include "models/register.h"

using namespace rondo;

TEST_SUITE_BEGIN("models/table_mlp");

namespace {

DatasetFacts facts_of_classes(int64_t classes) {
  DatasetFacts facts;
  facts.features = 3;
  facts.categories = {4, 2};
  facts.classes = classes;
  facts.class_weights.assign(static_cast<size_t>(classes), 1.5);
  return facts;
}

DatasetFacts facts_of_values(size_t count) {
  DatasetFacts facts;
  facts.features = 3;
  facts.targets.resize(count);
  return facts;
}

Batch rows(int64_t classes) {
  torch::manual_seed(3);
  return {{"features", torch::randn({8, 3})},
          {"categories",
           torch::stack({torch::arange(8).remainder(4), torch::arange(8).remainder(2)}, 1)},
          {"label", torch::arange(8).remainder(classes)}};
}

TableMlp::Options small_table_mlp() {
  TableMlp::Options options;
  options.hidden = {8, 8};
  return options;
}

template <class Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("learns two classes and several, with each activation") {
  for (const int64_t classes : {2, 3}) {
    for (const char* activation : {"relu", "gelu", "tanh"}) {
      CAPTURE(classes);
      CAPTURE(std::string(activation));
      TableMlp::Options options = small_table_mlp();
      options.activation = activation;
      test::check_model(
          use<TableMlp>(facts_of_classes(classes), options), rows(classes), "label", 0.5);
    }
  }
}

TEST_CASE("what is open comes from the facts of the data") {
  TableMlp::Options options;
  options.class_weights = {};
  TableMlp::resolve(options, facts_of_classes(3));
  CHECK(*options.features == 3);
  CHECK(*options.categories == std::vector<int64_t>{4, 2});
  CHECK(*options.classes == 3);
  CHECK(*options.targets == 0);
  CHECK(*options.class_weights == std::vector<double>(3, 1.5));
  options = {};
  TableMlp::resolve(options, facts_of_values(2));
  CHECK(*options.classes == 0);
  CHECK(*options.targets == 2);
  options = {};
  options.classes = 5;
  options.features = 7;
  TableMlp::resolve(options, facts_of_classes(3));
  CHECK(*options.classes == 5);
  CHECK(*options.features == 7);
}

TEST_CASE("a fact that is not known is an error that names it and the option") {
  TableMlp::Options options;
  DatasetFacts facts;
  std::string message = message_of([&] { TableMlp::resolve(options, facts); });
  CHECK(contains(message, "features"));
  CHECK(contains(message, "data"));
  facts.features = 2;
  message = message_of([&] { TableMlp::resolve(options, facts); });
  CHECK(contains(message, "classes"));
  message = message_of([] { TableMlp(TableMlp::Options()); });
  CHECK(contains(message, "\"auto\""));
}

TEST_CASE("the losses are LibTorch's") {
  Batch batch = rows(2);
  const auto two = use<TableMlp>(facts_of_classes(2), small_table_mlp()).make();
  two->module().eval();
  Outputs outputs = two->forward(batch);
  const at::Tensor expected =
      torch::nn::functional::cross_entropy(outputs["logits"], batch["label"]);
  CHECK(outputs["loss"].allclose(expected));

  batch.set("label", torch::randn({8}));
  const std::pair<Factory<Criterion>, at::Tensor (*)(const at::Tensor&, const at::Tensor&)>
      losses[] = {{{}, [](const at::Tensor& a, const at::Tensor& b) { return at::mse_loss(a, b); }},
                  {use<L1Loss>(),
                   [](const at::Tensor& a, const at::Tensor& b) { return at::l1_loss(a, b); }},
                  {use<HuberLoss>({1.0}),
                   [](const at::Tensor& a, const at::Tensor& b) { return at::huber_loss(a, b); }}};
  for (const auto& [loss, by_hand] : losses) {
    TableMlp::Options options = small_table_mlp();
    options.loss = loss;
    const auto model = use<TableMlp>(facts_of_values(1), options).make();
    model->module().eval();
    outputs = model->forward(batch);
    const at::Tensor& guess = outputs["prediction"];
    CHECK(guess.sizes() == at::IntArrayRef({8}));
    CHECK(outputs["loss"].allclose(by_hand(guess, batch["label"])));
  }
}

TEST_CASE("a loss of quantiles makes the network predict each of them") {
  TableMlp::Options options = small_table_mlp();
  options.loss = use<QuantileLoss>();
  const auto one = use<TableMlp>(facts_of_values(1), options).make();
  const Batch batch = {{"features", torch::randn({8, 3})}, {"label", torch::randn({8})}};
  CHECK(one->forward(batch)["prediction"].sizes() == at::IntArrayRef({8, 3}));
  const auto two = use<TableMlp>(facts_of_values(2), options).make();
  CHECK(two->forward(
               {{"features", torch::randn({8, 3})}, {"label", torch::randn({8, 2})}})["prediction"]
            .sizes() == at::IntArrayRef({8, 2, 3}));
  CHECK(two->metrics().empty());
}

TEST_CASE("weights of samples and classes weigh the loss") {
  Batch batch = rows(3);
  const at::Tensor weight = torch::arange(8).to(at::kFloat);
  batch.set("weight", weight);
  TableMlp::Options options = small_table_mlp();
  options.class_weights = std::vector<double>{1.0, 2.0, 0.5};
  const auto model = use<TableMlp>(facts_of_classes(3), options).make();
  model->module().eval();
  const Outputs outputs = model->forward(batch);
  const at::Tensor weights =
      weight * torch::tensor({1.0F, 2.0F, 0.5F}).index_select(0, batch["label"]);
  const at::Tensor losses =
      at::cross_entropy_loss(outputs["logits"], batch["label"], {}, at::Reduction::None);
  CHECK(outputs["loss"].allclose((losses * weights).sum() / weights.sum()));
}

TEST_CASE("values are predicted for each target, and their error is the metric") {
  const Batch batch = {{"features", torch::randn({4, 3})}, {"label", torch::randn({4, 2})}};
  const auto model = use<TableMlp>(facts_of_values(2), small_table_mlp()).make();
  const Outputs outputs = model->forward(batch);
  CHECK(outputs["prediction"].sizes() == at::IntArrayRef({4, 2}));
  const auto metrics = model->metrics();
  REQUIRE(metrics.size() == 2);
  const auto error = metrics[0].make();
  error->update(outputs, batch);
  CHECK(error->compute() == doctest::Approx(outputs["loss"].item<double>()));
  CHECK(model->forward({{"features", torch::randn({4, 3})}}).find("loss") == nullptr);
  CHECK_THROWS_AS(
      model->forward({{"features", torch::randn({4, 3})}, {"label", torch::randn({4})}}),
      ShapeError);
}

TEST_CASE("dropout works in train mode only, and a table without numbers is enough") {
  DatasetFacts facts = facts_of_classes(3);
  facts.features = 0;
  TableMlp::Options options = small_table_mlp();
  options.dropout = 0.5;
  options.batch_norm = false;
  const auto model = use<TableMlp>(facts, options).make();
  test::check_dropout(*model, rows(3));
}

TEST_CASE("a last batch of one row trains") {
  const auto model = use<TableMlp>(facts_of_classes(3), small_table_mlp()).make();
  const Batch batch = rows(3);
  const Batch one = {{"features", batch["features"].slice(0, 0, 1)},
                     {"categories", batch["categories"].slice(0, 0, 1)},
                     {"label", batch["label"].slice(0, 0, 1)}};
  model->module().train();
  CHECK(model->forward(one)["loss"].isfinite().item<bool>());
}

TEST_CASE("options out of range are refused") {
  const auto refused = [](auto change) {
    TableMlp::Options options = small_table_mlp();
    TableMlp::resolve(options, facts_of_classes(3));
    change(options);
    CHECK_THROWS_AS(TableMlp{options}, UsageError);
  };
  refused([](auto& o) { o.features = -1; });
  refused([](auto& o) { o.categories = std::vector<int64_t>{0}; });
  refused([](auto& o) { o.classes = 1; });
  refused([](auto& o) { o.classes = 0; });
  refused([](auto& o) { o.targets = 1; });
  refused([](auto& o) { o.hidden = {0}; });
  refused([](auto& o) { o.activation = "swish"; });
  refused([](auto& o) { o.dropout = 1.0; });
  refused([](auto& o) { o.embedding = 0; });
  refused([](auto& o) { o.loss = use<MseLoss>(); });
  refused([](auto& o) { o.class_weights = std::vector<double>{1.0}; });
}

TEST_CASE("in a config an option is \"auto\" or a value, and is written as such") {
  Registry<Criterion> losses("loss");
  register_builtin_losses(losses);
  Registry<Model> registry("model");
  register_builtin_models(registry, losses);
  ConfigTable keys;
  keys.set("classes", ConfigValue(int64_t{3}));
  std::vector<Fault> faults;
  FaultSink sink("", faults);
  const auto factory = registry.read_named("TableMlp", {}, keys, sink);
  REQUIRE(faults.empty());
  const std::string text = registry.write(factory).to_text();
  CHECK(contains(text, "features = \"auto\""));
  CHECK(contains(text, "classes = 3"));
  keys.set("features", ConfigValue(std::string("many")));
  registry.read_named("TableMlp", {}, keys, sink);
  CHECK(faults.size() == 1);
}

TEST_SUITE_END();
