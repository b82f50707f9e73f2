#include "models/gpt.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/require.h"
#include "metrics/token_loss.h"
#include "models/internal/classify.h"
#include "models/internal/next_token.h"
#include "models/module_model.h"
#include "models/register.h"

namespace rondo {

namespace {

Gpt::Options checked(const Gpt::Options& options) {
  Gpt::check(options);
  return options;
}

/// Attention and a two-layer perceptron, each behind a layer norm and beside the residual stream.
class Block final : public torch::nn::Module {
 public:
  explicit Block(const Gpt::Options& options)
      : heads_(options.heads),
        dropout_(options.dropout),
        norm1_(torch::nn::LayerNormOptions({options.width})),
        qkv_(options.width, 3 * options.width),
        projection_(options.width, options.width),
        norm2_(torch::nn::LayerNormOptions({options.width})),
        expand_(options.width, 4 * options.width),
        contract_(4 * options.width, options.width) {
    register_module("norm1", norm1_);
    register_module("qkv", qkv_);
    register_module("projection", projection_);
    register_module("norm2", norm2_);
    register_module("expand", expand_);
    register_module("contract", contract_);
  }

  /// \param mask  bool [T, T], true where a token must not look
  at::Tensor forward(const at::Tensor& input, const at::Tensor& mask) {
    const at::Tensor x = input + drop(projection_(attention(norm1_(input), mask)));
    return x + drop(contract_(at::gelu(expand_(norm2_(x)))));
  }

 private:
  at::Tensor drop(const at::Tensor& x) const { return at::dropout(x, dropout_, is_training()); }

  at::Tensor attention(const at::Tensor& x, const at::Tensor& mask) {
    const int64_t head_width = x.size(2) / heads_;
    // [3, B, heads, T, head_width]
    const at::Tensor parts =
        qkv_(x).view({x.size(0), x.size(1), 3, heads_, head_width}).permute({2, 0, 3, 1, 4});
    const double scale = 1.0 / std::sqrt(static_cast<double>(head_width));
    const at::Tensor scores = at::matmul(parts[0] * scale, parts[1].transpose(-2, -1));
    constexpr double kNever = -std::numeric_limits<double>::infinity();
    const at::Tensor weights = drop(scores.masked_fill(mask, kNever).softmax(-1));
    return at::matmul(weights, parts[2]).transpose(1, 2).reshape(x.sizes());
  }

  int64_t heads_;
  double dropout_;
  torch::nn::LayerNorm norm1_;
  torch::nn::Linear qkv_;
  torch::nn::Linear projection_;
  torch::nn::LayerNorm norm2_;
  torch::nn::Linear expand_;
  torch::nn::Linear contract_;
};

class Network final : public ModuleModel {
 public:
  explicit Network(const Gpt::Options& options);

  Outputs forward(const Batch& batch) override;
  std::vector<Factory<Metric>> metrics() const override;

  at::Tensor logits(const at::Tensor& tokens);

  const Gpt::Options& options() const { return options_; }

  at::Device device() const { return token_embedding_->weight.device(); }

 private:
  void initialise();

  Gpt::Options options_;
  torch::nn::Embedding token_embedding_;
  torch::nn::Embedding position_embedding_;
  std::vector<std::shared_ptr<Block>> blocks_;
  torch::nn::LayerNorm final_norm_;
  torch::nn::Linear head_{nullptr};  // empty when tied
};

Network::Network(const Gpt::Options& options)
    : options_(checked(options)),
      token_embedding_(options.vocabulary, options.width),
      position_embedding_(options.context, options.width),
      final_norm_(torch::nn::LayerNormOptions({options.width})) {
  register_module("token_embedding", token_embedding_);
  register_module("position_embedding", position_embedding_);
  for (int64_t i = 0; i < options.layers; ++i) {
    const auto block = std::make_shared<Block>(options);
    blocks_.push_back(register_module("block" + std::to_string(i), block));
  }
  register_module("final_norm", final_norm_);
  if (!options.tied) {
    const auto head = torch::nn::LinearOptions(options.width, options.vocabulary).bias(false);
    head_ = register_module("head", torch::nn::Linear(head));
  }
  initialise();
}

void Network::initialise() {
  constexpr double kStd = 0.02;  // of all matrices, in the code that came with the paper
  // Each block adds to the residual stream twice; scaled so, the sum keeps its variance.
  const double residual_std = kStd / std::sqrt(2.0 * static_cast<double>(options_.layers));
  for (const auto& item : named_parameters()) {
    const std::string& name = item.key();
    const auto has = [&name](const char* part) { return name.find(part) != std::string::npos; };
    if (has("bias")) {
      torch::nn::init::zeros_(item.value());
    } else if (!has("norm")) {
      const bool is_residual = has("projection") || has("contract");
      torch::nn::init::normal_(item.value(), 0.0, is_residual ? residual_std : kStd);
    }
  }
}

at::Tensor Network::logits(const at::Tensor& tokens) {
  detail::require_tokens("Gpt", tokens, options_.context);
  const int64_t length = tokens.size(1);
  at::Tensor x = token_embedding_(tokens) + position_embedding_->weight.narrow(0, 0, length);
  x = at::dropout(x, options_.dropout, is_training());
  // True where a token must not look. No buffer: a checkpoint has no need of it.
  const at::Tensor mask =
      at::ones({length, length}, tokens.options().dtype(at::kBool)).triu(/*diagonal=*/1);
  for (const auto& block : blocks_) {
    x = block->forward(x, mask);
  }
  x = final_norm_(x);
  return options_.tied ? at::linear(x, token_embedding_->weight) : head_(x);
}

Outputs Network::forward(const Batch& batch) {
  return detail::classify(logits(batch["tokens"]), batch, "targets");
}

std::vector<Factory<Metric>> Network::metrics() const {
  return {use<Perplexity>()};
}

}  // namespace

void Gpt::check(const Options& options) {
  detail::require(options.layers >= 1, "Gpt: layers", ">= 1", options.layers);
  detail::require(options.heads >= 1, "Gpt: heads", ">= 1", options.heads);
  detail::require(options.width >= 1 && options.width % options.heads == 0,
                  "Gpt: width",
                  fmt::format("a positive multiple of heads, {}", options.heads),
                  options.width);
  detail::require(options.context >= 1, "Gpt: context", ">= 1", options.context);
  detail::require(options.vocabulary >= 1, "Gpt: vocabulary", ">= 1", options.vocabulary);
  detail::require(
      options.dropout >= 0 && options.dropout < 1, "Gpt: dropout", "in [0, 1)", options.dropout);
}

Gpt::Gpt(const Options& options)
    : WrappedModel(std::make_unique<Network>(options)), vocabulary_(options.vocabulary) {}

std::vector<int64_t> Gpt::generate(std::vector<int64_t> prompt,
                                   const GenerateOptions& options,
                                   KeyedRandom& random) {
  auto& network = static_cast<Network&>(module());
  detail::require(!prompt.empty(), "Gpt: prompt", "at least one token", "none");
  for (const int64_t token : prompt) {
    detail::require(token >= 0 && token < vocabulary_,
                    "Gpt: prompt",
                    fmt::format("tokens below the vocabulary, {}", vocabulary_),
                    token);
  }
  detail::require(options.count >= 0, "Gpt: count", ">= 0", options.count);
  detail::require(options.temperature >= 0, "Gpt: temperature", ">= 0", options.temperature);
  const int64_t below = options.below.value_or(vocabulary_);
  detail::require(below >= 1 && below <= vocabulary_,
                  "Gpt: below",
                  fmt::format("in [1, {}], the vocabulary", vocabulary_),
                  below);
  const at::NoGradGuard no_grad;
  const detail::EvalMode eval_mode(network);
  const at::Device device = network.device();
  for (int64_t i = 0; i < options.count; ++i) {
    const auto seen =
        std::min<int64_t>(network.options().context, static_cast<int64_t>(prompt.size()));
    const at::Tensor tokens = detail::row_of({prompt.end() - seen, prompt.end()}).to(device);
    const at::Tensor last = network.logits(tokens)[0][seen - 1].narrow(0, 0, below);
    prompt.push_back(detail::choose_token(last, options.temperature, random));
  }
  return prompt;
}

void register_gpt(Registry<Model>& registry) {
  using Options = Gpt::Options;
  registry.add<Gpt>("Gpt", "Decoder-only transformer that predicts the next token.")
      .key("layers", &Options::layers, at_least(1), "blocks of attention and perceptron")
      .key("heads", &Options::heads, at_least(1), "heads of attention, a divisor of width")
      .key("width", &Options::width, at_least(1), "width of the residual stream")
      .key("context", &Options::context, at_least(1), "largest number of tokens in a window")
      .key("vocabulary", &Options::vocabulary, at_least(1), "number of different tokens")
      .key("dropout",
           &Options::dropout,
           below_one(),
           "share of every part's output that is set to zero")
      .key("tied", &Options::tied, "whether the head is the token embedding");
}

}  // namespace rondo
