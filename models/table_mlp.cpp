#include "models/table_mlp.h"

#include <ATen/ops/batch_norm.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/huber_loss.h>
#include <ATen/ops/l1_loss.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/stack.h>
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
#include "metrics/accuracy.h"
#include "metrics/regression_error.h"
#include "models/forward_error.h"
#include "models/internal/classify.h"
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
  detail::require(is_one_of(options.loss, {"mse", "mae", "huber"}),
                  "TableMlp: loss",
                  "\"mse\", \"mae\" or \"huber\"",
                  options.loss);
  const std::vector<double>& weights = *options.class_weights;
  detail::require(weights.empty() || static_cast<int64_t>(weights.size()) == *options.classes,
                  "TableMlp: class_weights",
                  "one for each class",
                  fmt::format("{}", weights));
}

Options validated(const Options& options) {
  check_resolved(options);
  check_ranges(options);
  return options;
}

class Network final : public ModuleModel {
 public:
  explicit Network(const TableMlp::Options& options);

  Outputs forward(const Batch& batch) override;
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
  static at::Tensor normalise(torch::nn::BatchNorm1d& norm, const at::Tensor& input);
  at::Tensor run(Block& block, const at::Tensor& input);
  Outputs predict_values(const at::Tensor& output, const Batch& batch) const;
  Outputs predict_classes(const at::Tensor& output, const Batch& batch) const;
  at::Tensor class_losses(const at::Tensor& output, const at::Tensor& label) const;
  at::Tensor value_losses(const at::Tensor& prediction, const at::Tensor& label) const;

  TableMlp::Options options_;
  std::vector<torch::nn::Embedding> embeddings_;
  std::vector<Block> blocks_;
  torch::nn::Linear head_{nullptr};
  at::Tensor class_weights_;  // float32 [classes]; undefined where they count alike
};

Network::Network(const TableMlp::Options& options) : options_(validated(options)) {
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
  const int64_t outputs = is_regression() ? *options.targets : of_classes;
  head_ = register_module("head", torch::nn::Linear(width, outputs));
  if (!options.class_weights.given->empty()) {
    class_weights_ =
        register_buffer("class_weights", at::tensor(*options.class_weights, at::kFloat));
  }
}

at::Tensor Network::input_of(const Batch& batch) {
  std::vector<at::Tensor> parts;
  if (*options_.features > 0) {
    parts.push_back(batch["features"]);
  }
  for (size_t i = 0; i < embeddings_.size(); ++i) {
    parts.push_back(embeddings_[i](batch["categories"].select(1, static_cast<int64_t>(i))));
  }
  return parts.size() == 1 ? parts.front() : at::cat(parts, 1);
}

at::Tensor Network::activate(const at::Tensor& input) const {
  if (options_.activation == "relu") {
    return at::relu(input);
  }
  return options_.activation == "gelu" ? at::gelu(input) : at::tanh(input);
}

/// One row has no variance: it is normalised as in an evaluation.
at::Tensor Network::normalise(torch::nn::BatchNorm1d& norm, const at::Tensor& input) {
  if (input.size(0) > 1) {
    return norm(input);
  }
  return at::batch_norm(input,
                        norm->weight,
                        norm->bias,
                        norm->running_mean,
                        norm->running_var,
                        /*training=*/false,
                        norm->options.momentum().value_or(0.0),
                        norm->options.eps(),
                        /*cudnn_enabled=*/false);
}

at::Tensor Network::run(Block& block, const at::Tensor& input) {
  at::Tensor x = block.linear(input);
  if (block.norm) {
    x = normalise(block.norm, x);
  }
  x = at::dropout(activate(x), options_.dropout, is_training());
  return block.is_residual ? x + input : x;
}

Outputs Network::forward(const Batch& batch) {
  at::Tensor x = input_of(batch);
  for (Block& block : blocks_) {
    x = run(block, x);
  }
  x = head_(x);
  return is_regression() ? predict_values(x, batch) : predict_classes(x, batch);
}

/// The mean of the samples' losses, by their weights.
at::Tensor weighted_mean(const at::Tensor& losses, const at::Tensor& weights) {
  return (losses * weights).sum() / weights.sum();
}

at::Tensor Network::value_losses(const at::Tensor& prediction, const at::Tensor& label) const {
  if (options_.loss == "mae") {
    return at::l1_loss(prediction, label, at::Reduction::None);
  }
  return options_.loss == "mse" ? at::mse_loss(prediction, label, at::Reduction::None)
                                : at::huber_loss(prediction, label, at::Reduction::None);
}

Outputs Network::predict_values(const at::Tensor& output, const Batch& batch) const {
  const at::Tensor prediction = *options_.targets == 1 ? output.squeeze(1) : output;
  const at::Tensor* label = batch.find("label");
  if (label == nullptr) {
    return {{"prediction", prediction}};
  }
  if (label->sizes() != prediction.sizes() || !label->is_floating_point()) {
    throw ShapeError(fmt::format("TableMlp predicts values, float32 [{}]; \"label\" is {}[{}]",
                                 fmt::join(prediction.sizes(), ", "),
                                 toString(label->scalar_type()),
                                 fmt::join(label->sizes(), ", ")));
  }
  at::Tensor losses = value_losses(prediction, *label);
  const at::Tensor* weight = batch.find("weight");
  if (weight != nullptr) {
    losses = losses.dim() == 1 ? losses : losses.mean(1);
  }
  return {{"loss", weight != nullptr ? weighted_mean(losses, *weight) : losses.mean()},
          {"prediction", prediction}};
}

/// Cross entropy of each sample, not weighted.
at::Tensor Network::class_losses(const at::Tensor& output, const at::Tensor& label) const {
  if (is_binary()) {
    return at::binary_cross_entropy_with_logits(
        output.squeeze(1), label.to(output.scalar_type()), {}, {}, at::Reduction::None);
  }
  return at::cross_entropy_loss(output, label, {}, at::Reduction::None);
}

Outputs Network::predict_classes(const at::Tensor& output, const Batch& batch) const {
  const at::Tensor logits = is_binary() ? at::cat({at::zeros_like(output), output}, 1) : output;
  const at::Tensor* label = batch.find("label");
  const at::Tensor* weight = batch.find("weight");
  const bool is_plain = weight == nullptr && !class_weights_.defined();
  if (label == nullptr || (is_plain && !is_binary())) {
    return detail::classify(logits, batch, "label");
  }
  const at::Tensor losses = class_losses(output, *label);
  if (is_plain) {
    return {{"loss", losses.mean()}, {"logits", logits}};
  }
  at::Tensor weights = class_weights_.defined() ? class_weights_.index_select(0, *label) : *weight;
  if (class_weights_.defined() && weight != nullptr) {
    weights = weights * *weight;
  }
  return {{"loss", weighted_mean(losses, weights)}, {"logits", logits}};
}

std::vector<Factory<Metric>> Network::metrics() const {
  if (is_regression()) {
    RegressionError::Options error;
    error.output = "prediction";
    error.target = "label";
    return {use<MeanSquaredError>(error), use<R2>(error)};
  }
  return {use<Accuracy>()};
}

[[noreturn]] void throw_unknown(const char* option) {
  throw UsageError(fmt::format(
      "TableMlp: {0} is \"auto\", and the data does not know its {0}; give it", option));
}

}  // namespace

TableMlp::TableMlp(const Options& options) : WrappedModel(std::make_unique<Network>(options)) {}

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

void register_table_mlp(Registry<Model>& registry) {
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
      .key("loss", &Options::loss, one_of({"mse", "mae", "huber"}), "loss of values")
      .key("class_weights",
           &Options::class_weights,
           at_least(0),
           "weights of classes in the loss; \"auto\": those that balance them");
}

}  // namespace rondo
