#include "callbacks/core/metrics_callback.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "data/tensor_dataset.h"
#include "metrics/metrics.h"
#include "metrics/register.h"
#include "models/builtin/mlp.h"
#include "models/losses/class_losses.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

Factory<Model> small_mlp() {
  Mlp::Options mlp;
  mlp.sizes = {4, 3};
  mlp.input = "x";
  return use<Mlp>(mlp);
}

TrainerOptions options_of(const TempDir& dir, const char* mode) {
  TrainerOptions options = tiny_options(dir / "run");
  options.model = small_mlp();
  options.backend.mode = mode;
  return options;
}

/// One metric of each kind that a config can name, which three logits and a label can be measured
/// with.
std::vector<Factory<Metric>> of_three_classes() {
  F1::Options f1;
  f1.classes = 3;
  f1.average = "none";
  Auroc::Options auroc;
  auroc.classes = 3;
  Accuracy::Options accuracy;
  accuracy.top_k = 2;
  ConfusionMatrix::Options confusion;
  confusion.classes = 3;
  return {use<F1>(f1), use<Auroc>(auroc), use<Accuracy>(accuracy), use<ConfusionMatrix>(confusion)};
}

std::vector<std::pair<std::string, double>> numbers_of(const Metrics& metrics) {
  std::vector<std::pair<std::string, double>> numbers;
  for (const Metrics::Item& item : metrics.items()) {
    numbers.emplace_back(item.first, metrics.number(item.first).value());
  }
  return numbers;
}

LoaderOptions batches_of_four() {
  LoaderOptions options;
  options.batch_size = 4;
  return options;
}

}  // namespace

TEST_SUITE_BEGIN("callbacks/core/metrics_callback");

TEST_CASE(
    "T123: validations without the model's target are warned of once, with what the batch has") {
  const TempDir dir;
  std::vector<std::string> lines;
  Trainer trainer(options_of(dir, "eager"), quiet_log(&lines));
  const DataLoader val("val", from_tensors({{"x", at::ones({8, 4})}, {"labels", at::ones({8})}}));
  CHECK(trainer.validate(val).empty());
  CHECK(trainer.validate(val).empty());
  const auto is_of_target = [](const std::string& line) {
    return line.find("\"x\" Float[1, 4], \"labels\" Float[1]") != std::string::npos;
  };
  CHECK(std::count_if(lines.begin(), lines.end(), is_of_target) == 1);
}

TEST_CASE("accuracy leaves out what the loss ignores, traced as eager") {
  at::Tensor label = at::arange(16).remainder(3);
  label.slice(0, 4, 9).fill_(-100);
  const at::Tensor x = at::arange(64, at::kFloat).sin().reshape({16, 4});
  std::vector<double> accuracies;
  for (const char* mode : {"eager", "traced"}) {
    const TempDir dir;
    Trainer trainer(options_of(dir, mode), quiet_log());
    const Metrics metrics = trainer.validate(
        DataLoader("val", from_tensors({{"x", x}, {"label", label}}), batches_of_four()));
    const at::Tensor guess =
        trainer.predict(DataLoader(from_tensors({{"x", x}})))["logits"].argmax(-1);
    const double right = guess.eq(label).sum().item<double>();
    accuracies.push_back(*metrics.number("val/accuracy"));
    CHECK(accuracies.back() == right / 11.0);
  }
  CHECK(accuracies[0] == accuracies[1]);
}

TEST_CASE("metrics of a config leave out what the loss ignores, or what their own options name") {
  CrossEntropyLoss::Options loss;
  loss.ignore_index = 2;
  Mlp::Options mlp;
  mlp.sizes = {4, 3};
  mlp.input = "x";
  mlp.loss = use<CrossEntropyLoss>(loss);
  ConfusionMatrix::Options confusion;
  confusion.classes = 3;
  Perplexity::Options perplexity;
  perplexity.targets = "label";
  ConfusionMatrix::Options own = confusion;
  own.ignore_index = 0;
  const TempDir dir;
  TrainerOptions options = options_of(dir, "traced");
  options.model = use<Mlp>(mlp);
  options.metrics = {use<ConfusionMatrix>(confusion),
                     use<ConfusionMatrix>(own).labelled("own"),
                     use<Perplexity>(perplexity)};
  Trainer trainer(options, quiet_log());
  const at::Tensor x = at::arange(64, at::kFloat).sin().reshape({16, 4});
  LoaderOptions one_batch;
  one_batch.batch_size = 16;
  const Metrics metrics = trainer.validate(DataLoader(
      "val", from_tensors({{"x", x}, {"label", at::arange(16).remainder(3)}}), one_batch));
  const auto labels = [&](const std::string& name, int label) {
    double sum = 0;
    for (int guess = 0; guess < 3; ++guess) {
      sum += *metrics.number("val/" + name + "/" + std::to_string(label) + "/" +
                             std::to_string(guess));
    }
    return sum;
  };
  CHECK(labels("confusion", 0) == 6);
  CHECK(labels("confusion", 1) == 5);
  CHECK(labels("confusion", 2) == 0);
  CHECK(labels("own", 0) == 0);
  CHECK(labels("own", 2) == 5);
  CHECK(*metrics.number("val/perplexity") ==
        doctest::Approx(std::exp(*metrics.number("val/loss"))));
}

TEST_CASE("a validation logs the curves of its metrics") {
  struct Tables final : Logger {
    struct Options {
      std::vector<std::string>* names = nullptr;
    };

    explicit Tables(const Options& options) : options_(options) {}

    void log(const Metrics&, int64_t) override {}

    void log_media(const Media& media, int64_t) override { options_.names->push_back(media.name); }

    Options options_;
  };

  const TempDir dir;
  std::vector<std::string> names;
  TrainerOptions options = options_of(dir, "traced");
  Auroc::Options auroc;
  auroc.classes = 3;
  options.metrics = {use<Auroc>(auroc)};
  options.loggers = {use<Tables>({&names})};
  Trainer trainer(options, quiet_log());
  trainer.validate(tiny_loader("val", 30));
  CHECK(names ==
        std::vector<std::string>{"val/auroc/curve/0", "val/auroc/curve/1", "val/auroc/curve/2"});
}

TEST_CASE("a validation measures what a config adds, traced as eager, with a short last batch") {
  std::vector<std::vector<std::pair<std::string, double>>> results;
  for (const char* mode : {"eager", "traced"}) {
    const TempDir dir;
    TrainerOptions options = options_of(dir, mode);
    options.metrics = of_three_classes();
    Trainer trainer(options, quiet_log());
    const DataLoader val = tiny_loader("val", 30, 4);
    results.push_back(numbers_of(trainer.validate(val)));
    CHECK(numbers_of(trainer.validate(val)) == results.back());  // nothing is left of the last one
    Trainer whole(options, quiet_log());
    const auto at_once = numbers_of(whole.validate(tiny_loader("val", 30, 30)));
    REQUIRE(at_once.size() == results.back().size());
    for (size_t i = 0; i < at_once.size(); ++i) {
      CHECK(at_once[i].second == doctest::Approx(results.back()[i].second));
    }
  }
  CHECK(results[0] == results[1]);
  CHECK(results[0].size() == 2 + 4 + 1 + 1 + 9);  // the loss and the model's accuracy come first
}

TEST_CASE("a configured metric takes the place of the model's, others need a label") {
  const TempDir dir;
  TrainerOptions options = options_of(dir, "eager");
  Accuracy::Options accuracy;
  accuracy.label = "other";
  options.metrics = {use<Accuracy>(accuracy), use<Accuracy>().labelled("first")};
  Trainer trainer(options, quiet_log());
  const at::Tensor x = at::arange(32, at::kFloat).sin().reshape({8, 4});
  const at::Tensor guess =
      trainer.predict(DataLoader(from_tensors({{"x", x}})))["logits"].argmax(-1);
  const Metrics metrics = trainer.validate(DataLoader(
      "val", from_tensors({{"x", x}, {"label", guess}, {"other", guess.add(1).remainder(3)}})));
  CHECK(metrics.number("val/accuracy") == 0.0);
  CHECK(metrics.number("val/first") == 1.0);

  options.metrics = {use<Accuracy>(), use<Accuracy>()};
  try {
    const Trainer two(options, quiet_log());
    FAIL("two metrics of one name were taken");
  } catch (const Error&) {
    const std::string message = describe(std::current_exception());
    CHECK(message.find("give one of them a label") != std::string::npos);
  }
}

TEST_CASE("a metric that needs no loss is measured without one") {
  const TempDir dir;
  TrainerOptions options = options_of(dir, "traced");
  Accuracy::Options accuracy;
  accuracy.label = "class";
  options.metrics = {use<Accuracy>(accuracy).labelled("right")};
  std::vector<std::string> lines;
  Trainer trainer(options, quiet_log(&lines));
  const at::Tensor x = at::arange(32, at::kFloat).sin().reshape({8, 4});
  const at::Tensor guess =
      trainer.predict(DataLoader(from_tensors({{"x", x}})))["logits"].argmax(-1);
  const Metrics metrics =
      trainer.validate(DataLoader("val", from_tensors({{"x", x}, {"class", guess}})));
  CHECK(metrics.items().size() == 1);
  CHECK(metrics.number("val/right") == 1.0);
  REQUIRE_FALSE(lines.empty());
  CHECK(lines.back().find("no loss (needs output \"loss\")") != std::string::npos);
}

TEST_CASE("training batches are measured between log steps, through a save and a resume") {
  using Values = std::vector<std::pair<int64_t, double>>;
  const auto train = [](const std::filesystem::path& dir, const char* mode, const char* from) {
    std::vector<MemoryLogger::Entry> entries;
    MemoryLogger::Options memory;
    memory.entries = &entries;
    TrainerOptions options = tiny_options(dir);
    options.model = small_mlp();
    options.backend.mode = mode;
    options.loop.max_steps = 12;
    options.logging.log_steps = 4;
    options.checkpoint.steps = 6;  // between two log steps
    options.checkpoint.load.path = from;
    options.train_metrics = of_three_classes();
    options.loggers = {use<MemoryLogger>(memory)};
    Trainer trainer(options, quiet_log());
    trainer.fit(tiny_loader("train", 12, 5));
    return values_of(entries, "f1");
  };
  const TempDir dir;
  const Values expected = train(dir / "eager", "eager", "");
  REQUIRE(expected.size() == 3);
  CHECK(train(dir / "traced", "traced", "") == expected);
  for (const char* mode : {"eager", "traced"}) {
    const std::string saved = (dir.path() / mode / "checkpoint_6.pt").string();
    CHECK(train(dir.path() / (std::string("resumed_") + mode), mode, saved.c_str()) ==
          Values(expected.begin() + 1, expected.end()));
  }
}

TEST_CASE("a metric of training that never has its inputs warns once") {
  const TempDir dir;
  std::vector<std::string> lines;
  TrainerOptions options = tiny_options(dir / "run");
  options.logging.log_steps = 2;
  options.loop.max_steps = 6;
  options.train_metrics = {use<Mean>({"loss"}), use<Mean>({"distance"})};
  Trainer trainer(options, quiet_log(&lines));
  trainer.fit(tiny_loader("train"));
  CHECK(std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
          return line.find("training has no distance (needs output \"distance\")") !=
                 std::string::npos;
        }) == 1);
}

TEST_CASE("every metric of the registry can be made from its defaults and says what it needs") {
  Registry<Metric> registry("metric");
  register_builtin_metrics(registry);
  CHECK(registry.entries().size() >= 14);
  for (const auto& entry : registry.entries()) {
    CAPTURE(entry.name);
    std::vector<Fault> list;
    FaultSink faults("", list);
    const Factory<Metric> factory = registry.read_named(entry.name, {}, {}, faults);
    REQUIRE(factory);
    const auto metric = factory.make();
    CHECK_FALSE(metric->name().empty());
    CHECK(metric->needs().outputs.size() == 1);
    CHECK_FALSE(metric->state().empty());
  }
}

TEST_CASE("no key of a metric is its label, so that what is written reads back to the same") {
  Registry<Metric> registry("metric");
  register_builtin_metrics(registry);
  for (const auto& entry : registry.entries()) {
    CAPTURE(entry.name);
    for (const OptionKey& key : entry.keys->keys()) {
      CHECK(key.name != "label");
    }
    std::vector<Fault> faults;
    FaultSink sink("", faults);
    const Factory<Metric> metric = registry.read_named(entry.name, {}, {}, sink);
    CHECK(registry.read_single(registry.write(metric), sink).label().empty());
    CHECK(faults.empty());
  }
}

TEST_SUITE_END();
