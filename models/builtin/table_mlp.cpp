#include "models/builtin/table_mlp.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <optional>

#include "core/require.h"
#include "metrics/regression_error.h"
#include "models/blocks/batch_norm.h"
#include "models/blocks/judge.h"
#include "models/losses/class_losses.h"
#include "models/losses/loss_option.h"
#include "models/losses/value_losses.h"
#include "models/module_model.h"
#include "models/register.h"

namespace rondo {

namespace {

using Options = TableMlp::Options;

bool is_one_of(const std::string& text, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(), [&](const char* word) { return text == word; });
}

bool all_positive(const std::vector<int64_t>& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](int64_t n) { return n >= 1; });
}

void check_resolved(const Options& options) {
  const std::pair<const char*, bool> open[] = {{"features", options.features.is_auto()},
                                               {"categories", options.categories.is_auto()},
                                               {"classes", options.classes.is_auto()},
                                               {"targets", options.targets.is_auto()},
                                               {"class_weights", options.class_weights.is_auto()}};
  for (const auto& [name, is_auto] : open) {
    if (is_auto) {
      throw UsageError(
          fmt::format("TableMlp: {} is \"auto\": give it, or build the model for its "
                      "data, use<TableMlp>(loader.facts())",
                      name));
    }
  }
}

void check_ranges(const Options& options) {
  detail::require(*options.features >= 0, "TableMlp: features", ">= 0", *options.features);
  detail::require(all_positive(*options.categories),
                  "TableMlp: categories",
                  "numbers >= 1",
                  fmt::format("{}", *options.categories));
  detail::require(*options.features > 0 || !options.categories.given->empty(),
                  "TableMlp: features",
                  ">= 1 where there are no categories",
                  0);
  detail::require(*options.classes == 0 || *options.classes >= 2,
                  "TableMlp: classes",
                  ">= 2, or 0 where values are predicted",
                  *options.classes);
  detail::require(*options.targets >= 0, "TableMlp: targets", ">= 0", *options.targets);
  detail::require((*options.classes == 0) != (*options.targets == 0),
                  "TableMlp: classes and targets",
                  "one of them 0: a network predicts a class or values",
                  fmt::format("{} and {}", *options.classes, *options.targets));
  detail::require(all_positive(options.hidden),
                  "TableMlp: hidden",
                  "numbers >= 1",
                  fmt::format("{}", options.hidden));
  detail::require(is_one_of(options.activation, {"relu", "gelu", "tanh"}),
                  "TableMlp: activation",
                  "\"relu\", \"gelu\" or \"tanh\"",
                  options.activation);
  detail::require(options.dropout >= 0 && options.dropout < 1,
                  "TableMlp: dropout",
                  "in [0, 1)",
                  options.dropout);
  detail::require(options.embedding >= 1, "TableMlp: embedding", ">= 1", options.embedding);
  const std::vector<double>& weights = *options.class_weights;
  detail::require(weights.empty() || static_cast<int64_t>(weights.size()) == *options.classes,
                  "TableMlp: class_weights",
                  "one for each class",
                  fmt::format("{}", weights));
}

Options validated_options(const Options& options) {
  check_resolved(options);
  check_ranges(options);
  return options;
}

class TableMlpNetwork final : public ModuleModel {
 public:
  explicit TableMlpNetwork(const TableMlp::Options& options);

  Outputs forward(const Batch& batch) override;

  const Criterion* criterion() const override { return &judge_.loss(); }

  std::vector<Factory<Metric>> metrics() const override;

 private:
  struct Block {
    torch::nn::Linear linear{nullptr};
    torch::nn::BatchNorm1d norm{nullptr};
    bool is_residual = false;
  };

  bool is_regression() const { return *options_.classes == 0; }

  bool is_binary() const { return *options_.classes == 2; }

  at::Tensor input_of(const Batch& batch);
  at::Tensor activate(const at::Tensor& input) const;
  at::Tensor run(Block& block, const at::Tensor& input);
  at::Tensor output_of(const at::Tensor& x) const;
  at::Tensor weights_of(const Batch& batch) const;

  TableMlp::Options options_;
  detail::Judge judge_;
  std::vector<torch::nn::Embedding> embeddings_;
  std::vector<Block> blocks_;
  torch::nn::Linear head_{nullptr};
  at::Tensor class_weights_;  // float32 [classes]; undefined where they count alike
};

/// Cross entropy of classes and MSE of values, unless the options name another loss.
Factory<Criterion> table_loss(const TableMlp::Options& options) {
  if (options.loss) {
    return options.loss;
  }
  return *options.classes == 0 ? use<MseLoss>() : use<CrossEntropyLoss>();
}

TableMlpNetwork::TableMlpNetwork(const TableMlp::Options& options)
    : options_(validated_options(options)), judge_(table_loss(options), "label") {
  const auto wanted = is_regression() ? Criterion::Targets::Values : Criterion::Targets::Classes;
  detail::require(judge_.loss().targets() == wanted,
                  "TableMlp: loss",
                  is_regression() ? "a loss of values" : "a loss of classes",
                  options.loss ? options.loss.name() : "");
  int64_t width = *options.features;
  for (size_t i = 0; i < options.categories.given->size(); ++i) {
    const int64_t codes = (*options.categories)[i];
    const int64_t embedded = std::min(options.embedding, (codes + 1) / 2);
    embeddings_.push_back(
        register_module("embedding" + std::to_string(i), torch::nn::Embedding(codes, embedded)));
    width += embedded;
  }
  for (size_t i = 0; i < options.hidden.size(); ++i) {
    const int64_t next = options.hidden[i];
    Block block;
    // A batch norm takes any bias away.
    const auto linear = torch::nn::LinearOptions(width, next).bias(!options.batch_norm);
    block.linear = register_module("layer" + std::to_string(i), torch::nn::Linear(linear));
    if (options.batch_norm) {
      block.norm = register_module("norm" + std::to_string(i), torch::nn::BatchNorm1d(next));
    }
    block.is_residual = options.residual && i > 0 && width == next;
    blocks_.push_back(std::move(block));
    width = next;
  }
  const int64_t of_classes = is_binary() ? 1 : *options.classes;
  const int64_t outputs =
      is_regression() ? *options.targets * judge_.loss().outputs_per_value() : of_classes;
  head_ = register_module("head", torch::nn::Linear(width, outputs));
  if (!options.class_weights.given->empty()) {
    class_weights_ =
        register_buffer("class_weights", at::tensor(*options.class_weights, at::kFloat));
  }
}

at::Tensor TableMlpNetwork::input_of(const Batch& batch) {
  std::vector<at::Tensor> parts;
  if (*options_.features > 0) {
    parts.push_back(batch["features"]);
  }
  for (size_t i = 0; i < embeddings_.size(); ++i) {
    parts.push_back(embeddings_[i](batch["categories"].select(1, static_cast<int64_t>(i))));
  }
  return parts.size() == 1 ? parts.front() : at::cat(parts, 1);
}

at::Tensor TableMlpNetwork::activate(const at::Tensor& input) const {
  if (options_.activation == "relu") {
    return at::relu(input);
  }
  return options_.activation == "gelu" ? at::gelu(input) : at::tanh(input);
}

at::Tensor TableMlpNetwork::run(Block& block, const at::Tensor& input) {
  at::Tensor x = block.linear(input);
  if (block.norm) {
    x = detail::batch_norm(block.norm, x);
  }
  x = at::dropout(activate(x), options_.dropout, is_training());
  return block.is_residual ? x + input : x;
}

Outputs TableMlpNetwork::forward(const Batch& batch) {
  at::Tensor x = input_of(batch);
  for (Block& block : blocks_) {
    x = run(block, x);
  }
  const at::Tensor output = output_of(head_(x));
  const at::Tensor weights = batch.find("label") != nullptr ? weights_of(batch) : at::Tensor();
  return judge_(output, batch, weights);
}

/// The weight of each sample in the loss; undefined where all count alike.
at::Tensor TableMlpNetwork::weights_of(const Batch& batch) const {
  const at::Tensor* weight = batch.find("weight");
  if (!class_weights_.defined()) {
    return weight != nullptr ? *weight : at::Tensor();
  }
  const at::Tensor by_class = class_weights_.index_select(0, batch["label"].to(at::kLong));
  return weight != nullptr ? by_class * *weight : by_class;
}

at::Tensor TableMlpNetwork::output_of(const at::Tensor& x) const {
  if (is_binary()) {
    return at::cat({at::zeros_like(x), x}, 1);
  }
  if (!is_regression()) {
    return x;
  }
  const at::Tensor values = *options_.targets == 1 ? x.squeeze(1) : x;
  const int64_t of_value = judge_.loss().outputs_per_value();
  return of_value == 1 || *options_.targets == 1 ? values
                                                 : x.view({x.size(0), *options_.targets, of_value});
}

std::vector<Factory<Metric>> TableMlpNetwork::metrics() const {
  std::vector<Factory<Metric>> metrics = judge_.metrics();
  if (is_regression() && !metrics.empty()) {
    RegressionError::Options error;
    error.output = "prediction";
    error.target = "label";
    metrics.push_back(use<R2>(error));
  }
  return metrics;
}

[[noreturn]] void throw_unknown(const char* option) {
  throw UsageError(fmt::format(
      "TableMlp: {0} is \"auto\", and the data does not know its {0}; give it", option));
}

}  // namespace

TableMlp::TableMlp(const Options& options)
    : WrappedModel(std::make_unique<TableMlpNetwork>(options)) {}

void TableMlp::resolve(Options& options, const DatasetFacts& facts) {
  if (!facts.features && (options.features.is_auto() || options.categories.is_auto())) {
    throw_unknown(options.features.is_auto() ? "features" : "categories");
  }
  const bool knows_labels = facts.classes || !facts.targets.empty();
  if (!knows_labels && (options.classes.is_auto() || options.targets.is_auto())) {
    throw_unknown(options.classes.is_auto() ? "classes" : "targets");
  }
  options.features = options.features.given.value_or(facts.features.value_or(0));
  options.categories = options.categories.given.value_or(facts.categories);
  options.classes = options.classes.given.value_or(facts.classes.value_or(0));
  options.targets = options.targets.given.value_or(static_cast<int64_t>(facts.targets.size()));
  options.class_weights = options.class_weights.given.value_or(facts.class_weights);
}

void register_table_mlp(Registry<Model>& registry, const Registry<Criterion>& losses) {
  registry
      .add<TableMlp>("TableMlp",
                     "Linear layers over the numbers and embedded categories of a table.")
      .key("features", &Options::features, at_least(0), "numbers of a sample")
      .key("categories",
           &Options::categories,
           at_least(1),
           "codes of each column of categories, each embedded")
      .key("classes",
           &Options::classes,
           at_least(0),
           "classes to tell apart; 0: values are predicted")
      .key("targets", &Options::targets, at_least(0), "values to predict; 0: classes")
      .key("hidden", &Options::hidden, at_least(1), "widths of the layers")
      .key("activation",
           &Options::activation,
           one_of({"relu", "gelu", "tanh"}),
           "what stands between two layers")
      .key("dropout", &Options::dropout, below_one(), "share of hidden units set to zero")
      .key("batch_norm", &Options::batch_norm, "normalise after each hidden layer")
      .key("residual", &Options::residual, "add a layer's input where the widths are equal")
      .key("embedding", &Options::embedding, at_least(1), "widest embedding of a category")
      .key_of("loss",
              &Options::loss,
              LossOption(losses),
              "what the model is trained for, instead of CrossEntropy or MSE")
      .key("class_weights",
           &Options::class_weights,
           at_least(0),
           "weights of classes in the loss; \"auto\": those that balance them");
}

}  // namespace rondo
