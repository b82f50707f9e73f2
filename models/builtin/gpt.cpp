#include "models/builtin/gpt.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/silu.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/require.h"
#include "metrics/metric.h"
#include "models/blocks/attention.h"
#include "models/blocks/auto_sizes.h"
#include "models/blocks/judge.h"
#include "models/blocks/next_token.h"
#include "models/losses/loss_option.h"
#include "models/module_model.h"
#include "models/recompute.h"
#include "models/register.h"

namespace rondo {

namespace {

constexpr std::array<detail::AutoSize<Gpt::Options>, 1> kSizesOfGpt{
    {{"vocabulary", &Gpt::Options::vocabulary}}};

Gpt::Options checked(const Gpt::Options& options) {
  Gpt::check(options);
  return options;
}

/// x / sqrt(mean(x²)), times a weight: a layer norm without mean and bias.
class RmsNorm final : public torch::nn::Module {
 public:
  explicit RmsNorm(int64_t width) : weight_(register_parameter("weight", at::ones({width}))) {}

  at::Tensor forward(const at::Tensor& x) const {
    constexpr double kEpsilon = 1e-5;
    return x * (x.square().mean(-1, /*keepdim=*/true) + kEpsilon).rsqrt() * weight_;
  }

 private:
  at::Tensor weight_;
};

/// Either norm.
class Norm {
 public:
  explicit Norm(const Gpt::Options& options) {
    if (options.norm == "rms") {
      rms_ = std::make_shared<RmsNorm>(options.width);
    } else {
      layer_ = torch::nn::LayerNorm(torch::nn::LayerNormOptions({options.width}));
    }
  }

  void add_to(torch::nn::Module& owner, const std::string& name) {
    if (rms_) {
      owner.register_module(name, rms_);
    } else {
      owner.register_module(name, layer_);
    }
  }

  at::Tensor operator()(const at::Tensor& x) { return rms_ ? rms_->forward(x) : layer_(x); }

 private:
  std::shared_ptr<RmsNorm> rms_;
  torch::nn::LayerNorm layer_{nullptr};
};

/// Keys and values of the tokens that a block has seen, [B, kv_heads, tokens, head width] each.
struct Seen {
  at::Tensor keys;
  at::Tensor values;
};

/// Attention and a two-layer perceptron, each behind a norm and beside the residual stream.
class Block final : public torch::nn::Module {
 public:
  explicit Block(const Gpt::Options& options);

  /// \param mask   see detail::attend; undefined for one that sees all
  /// \param first  position of the first token
  /// \param seen   of the tokens before, to which these are added; null: there are none
  at::Tensor forward(const at::Tensor& input, const at::Tensor& mask, int64_t first, Seen* seen);

 private:
  at::Tensor drop(const at::Tensor& x) const { return at::dropout(x, dropout_, is_training()); }

  std::array<at::Tensor, 3> split(const at::Tensor& all) const;
  at::Tensor attention(const at::Tensor& x, const at::Tensor& mask, int64_t first, Seen* seen);
  at::Tensor perceptron(const at::Tensor& x);

  int64_t heads_;
  int64_t kv_heads_;
  double rotary_base_;  // 0: positions are learned
  bool is_gated_;
  double dropout_;
  Norm norm1_;
  torch::nn::Linear qkv_;
  torch::nn::Linear projection_;
  Norm norm2_;
  torch::nn::Linear expand_;
  torch::nn::Linear contract_;
};

int64_t kv_heads_of(const Gpt::Options& options) {
  return options.kv_heads == 0 ? options.heads : options.kv_heads;
}

/// So that a gated perceptron, which has a third matrix, has as many parameters as another one.
int64_t hidden_of(const Gpt::Options& options) {
  if (options.hidden > 0) {
    return options.hidden;
  }
  const int64_t plain = 4 * options.width;
  return options.activation == "swiglu" ? (2 * plain + 2) / 3 : plain;
}

torch::nn::Linear linear(int64_t inputs, int64_t outputs, const Gpt::Options& options) {
  return torch::nn::Linear(torch::nn::LinearOptions(inputs, outputs).bias(options.bias));
}

Block::Block(const Gpt::Options& options)
    : heads_(options.heads),
      kv_heads_(kv_heads_of(options)),
      rotary_base_(options.positions == "rotary" ? options.rotary_base : 0.0),
      is_gated_(options.activation == "swiglu"),
      dropout_(options.dropout),
      norm1_(options),
      qkv_(linear(
          options.width, options.width + 2 * kv_heads_ * (options.width / options.heads), options)),
      projection_(linear(options.width, options.width, options)),
      norm2_(options),
      expand_(linear(options.width, (is_gated_ ? 2 : 1) * hidden_of(options), options)),
      contract_(linear(hidden_of(options), options.width, options)) {
  norm1_.add_to(*this, "norm1");
  register_module("qkv", qkv_);
  register_module("projection", projection_);
  norm2_.add_to(*this, "norm2");
  register_module("expand", expand_);
  register_module("contract", contract_);
}

at::Tensor Block::forward(const at::Tensor& input,
                          const at::Tensor& mask,
                          int64_t first,
                          Seen* seen) {
  const at::Tensor x = input + drop(projection_(attention(norm1_(input), mask, first, seen)));
  return x + drop(contract_(perceptron(norm2_(x))));
}

at::Tensor Block::perceptron(const at::Tensor& x) {
  if (!is_gated_) {
    return at::gelu(expand_(x));
  }
  const std::vector<at::Tensor> halves = expand_(x).chunk(2, -1);
  return at::silu(halves[0]) * halves[1];
}

/// Queries, keys and values of each head, [B, heads, T, head width], of [B, T, all of them].
std::array<at::Tensor, 3> Block::split(const at::Tensor& all) const {
  const int64_t batch = all.size(0);
  const int64_t length = all.size(1);
  if (kv_heads_ == heads_) {
    const at::Tensor parts = all.view({batch, length, 3, heads_, -1}).permute({2, 0, 3, 1, 4});
    return {parts[0], parts[1], parts[2]};
  }
  const at::Tensor heads = all.view({batch, length, heads_ + 2 * kv_heads_, -1}).transpose(1, 2);
  return {heads.narrow(1, 0, heads_),
          heads.narrow(1, heads_, kv_heads_),
          heads.narrow(1, heads_ + kv_heads_, kv_heads_)};
}

at::Tensor Block::attention(const at::Tensor& x,
                            const at::Tensor& mask,
                            int64_t first,
                            Seen* seen) {
  auto [query, key, value] = split(qkv_(x));
  if (rotary_base_ > 0) {
    query = detail::rotate(query, first, rotary_base_);
    key = detail::rotate(key, first, rotary_base_);
  }
  if (seen != nullptr) {
    key = seen->keys = seen->keys.defined() ? at::cat({seen->keys, key}, 2) : key;
    value = seen->values = seen->values.defined() ? at::cat({seen->values, value}, 2) : value;
  }
  const int64_t shared_by = heads_ / kv_heads_;
  return detail::attend(query,
                        detail::repeat_heads(key, shared_by),
                        detail::repeat_heads(value, shared_by),
                        mask,
                        is_training() ? dropout_ : 0.0);
}

class GptNetwork final : public ModuleModel {
 public:
  explicit GptNetwork(const Gpt::Options& options);

  Outputs forward(const Batch& batch) override;

  const Criterion* criterion() const override { return &judge_.loss(); }

  std::vector<Factory<Metric>> metrics() const override;

  /// \param seen  one for each block, of the tokens before; empty: there are none
  at::Tensor logits(const at::Tensor& tokens, std::vector<Seen>& seen);

  /// Of the token that follows `tokens`, [vocabulary]. What `seen` has is not computed again.
  at::Tensor next_logits(const std::vector<int64_t>& tokens, std::vector<Seen>& seen);

  const Gpt::Options& options() const { return options_; }

  at::Device device() const { return token_embedding_->weight.device(); }

 private:
  void initialise();

  Gpt::Options options_;
  torch::nn::Embedding token_embedding_;
  torch::nn::Embedding position_embedding_{nullptr};  // where positions are learned
  std::vector<std::shared_ptr<Block>> blocks_;
  Norm final_norm_;
  torch::nn::Linear head_{nullptr};  // empty when tied
  detail::Judge judge_;
};

GptNetwork::GptNetwork(const Gpt::Options& options)
    : options_(checked(options)),
      token_embedding_(*options.vocabulary, options.width),
      final_norm_(options),
      judge_(options.loss, "targets") {
  register_module("token_embedding", token_embedding_);
  if (options.positions == "learned") {
    position_embedding_ =
        register_module("position_embedding", torch::nn::Embedding(options.context, options.width));
  }
  for (int64_t i = 0; i < options.layers; ++i) {
    const auto block = std::make_shared<Block>(options);
    blocks_.push_back(register_module("block" + std::to_string(i), block));
  }
  final_norm_.add_to(*this, "final_norm");
  if (!options.tied) {
    const auto head = torch::nn::LinearOptions(options.width, *options.vocabulary).bias(false);
    head_ = register_module("head", torch::nn::Linear(head));
  }
  initialise();
}

void GptNetwork::initialise() {
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

at::Tensor GptNetwork::logits(const at::Tensor& tokens, std::vector<Seen>& seen) {
  detail::require_tokens("Gpt", tokens, options_.context);
  const int64_t length = tokens.size(1);
  const bool goes_on = !seen.empty() && seen.front().keys.defined();
  const int64_t first = goes_on ? seen.front().keys.size(2) : 0;
  at::Tensor x = token_embedding_(tokens);
  if (position_embedding_) {
    x = x + position_embedding_->weight.narrow(0, first, length);
  }
  x = at::dropout(x, options_.dropout, is_training());
  at::Tensor mask;
  if (options_.positions == "alibi") {
    mask = detail::linear_biases(options_.heads, first, length, x);
  } else if (!goes_on) {
    // True where a token must not look. No buffer: a checkpoint has no need of it.
    mask = at::ones({length, length}, tokens.options().dtype(at::kBool)).triu(/*diagonal=*/1);
  }
  for (size_t i = 0; i < blocks_.size(); ++i) {
    if (options_.recompute && seen.empty()) {
      x = recompute(*blocks_[i],
                    [block = blocks_[i], mask](const auto& inputs) {
                      return block->forward(inputs[0], mask, /*first=*/0, /*seen=*/nullptr);
                    },
                    {x});
    } else {
      x = blocks_[i]->forward(x, mask, first, seen.empty() ? nullptr : &seen[i]);
    }
  }
  x = final_norm_(x);
  return options_.tied ? at::linear(x, token_embedding_->weight) : head_(x);
}

at::Tensor GptNetwork::next_logits(const std::vector<int64_t>& tokens, std::vector<Seen>& seen) {
  const auto count = static_cast<int64_t>(tokens.size());
  if (count > options_.context) {  // the window moves: every position is another one
    std::vector<Seen> none;
    const at::Tensor row = detail::row_of({tokens.end() - options_.context, tokens.end()});
    return logits(row.to(device()), none)[0][options_.context - 1];
  }
  const bool goes_on = seen.front().keys.defined();
  const at::Tensor row =
      detail::row_of({goes_on ? tokens.end() - 1 : tokens.begin(), tokens.end()});
  const at::Tensor all = logits(row.to(device()), seen);
  return all[0][all.size(1) - 1];
}

Outputs GptNetwork::forward(const Batch& batch) {
  std::vector<Seen> none;
  return judge_(logits(batch["tokens"], none), batch);
}

std::vector<Factory<Metric>> GptNetwork::metrics() const {
  return judge_.token_metrics();
}

void require_word(const char* option, const std::string& word, const char* one, const char* other) {
  detail::require(
      word == one || word == other, option, fmt::format("\"{}\" or \"{}\"", one, other), word);
}

}  // namespace

void Gpt::check(const Options& options) {
  detail::require(options.layers >= 1, "Gpt: layers", ">= 1", options.layers);
  detail::require(options.heads >= 1, "Gpt: heads", ">= 1", options.heads);
  detail::require(options.width >= 1 && options.width % options.heads == 0,
                  "Gpt: width",
                  fmt::format("a positive multiple of heads, {}", options.heads),
                  options.width);
  detail::require(options.kv_heads >= 0 && options.heads % kv_heads_of(options) == 0,
                  "Gpt: kv_heads",
                  fmt::format("a divisor of heads, {}, or 0", options.heads),
                  options.kv_heads);
  detail::require(options.hidden >= 0, "Gpt: hidden", ">= 0", options.hidden);
  detail::require(options.positions == "learned" || options.positions == "rotary" ||
                      options.positions == "alibi",
                  "Gpt: positions",
                  "\"learned\", \"rotary\" or \"alibi\"",
                  options.positions);
  require_word("Gpt: norm", options.norm, "layer", "rms");
  require_word("Gpt: activation", options.activation, "gelu", "swiglu");
  detail::require(options.positions != "rotary" || options.width / options.heads % 2 == 0,
                  "Gpt: width",
                  "an even multiple of heads, for rotary positions",
                  options.width);
  detail::require(options.rotary_base > 1, "Gpt: rotary_base", "> 1", options.rotary_base);
  detail::require(options.context >= 1, "Gpt: context", ">= 1", options.context);
  detail::check_sizes("Gpt", kSizesOfGpt, options);
  detail::require(
      options.dropout >= 0 && options.dropout < 1, "Gpt: dropout", "in [0, 1)", options.dropout);
}

Gpt::Gpt(const Options& options)
    : WrappedModel(std::make_unique<GptNetwork>(detail::resolved("Gpt", kSizesOfGpt, options))),
      vocabulary_(*options.vocabulary) {}

void Gpt::resolve(Options& options, const DatasetFacts& facts) {
  detail::resolve_sizes("Gpt", kSizesOfGpt, options, facts);
}

std::vector<int64_t> Gpt::generate(std::vector<int64_t> prompt,
                                   const GenerateOptions& options,
                                   KeyedRandom& random) {
  auto& network = static_cast<GptNetwork&>(module());
  detail::require(!prompt.empty(), "Gpt: prompt", "at least one token", "none");
  for (const int64_t token : prompt) {
    detail::require(token >= 0 && token < vocabulary_,
                    "Gpt: prompt",
                    fmt::format("tokens below the vocabulary, {}", vocabulary_),
                    token);
  }
  detail::require(options.count >= 0, "Gpt: count", ">= 0", options.count);
  detail::require(options.temperature >= 0, "Gpt: temperature", ">= 0", options.temperature);
  detail::require(options.top_k >= 0, "Gpt: top_k", ">= 0", options.top_k);
  const int64_t below = options.below.value_or(vocabulary_);
  detail::require(below >= 1 && below <= vocabulary_,
                  "Gpt: below",
                  fmt::format("in [1, {}], the vocabulary", vocabulary_),
                  below);
  const at::NoGradGuard no_grad;
  const detail::EvalMode eval_mode(network);
  std::vector<Seen> seen(static_cast<size_t>(network.options().layers));
  for (int64_t i = 0; i < options.count; ++i) {
    const at::Tensor logits = network.next_logits(prompt, seen).narrow(0, 0, below);
    prompt.push_back(detail::choose_token(
        detail::only_largest(logits, options.top_k), options.temperature, random));
  }
  return prompt;
}

void register_gpt(Registry<Model>& registry, const Registry<Criterion>& losses) {
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
      .key("tied", &Options::tied, "whether the head is the token embedding")
      .key("positions",
           &Options::positions,
           one_of({"learned", "rotary", "alibi"}),
           "how a token knows where it is")
      .key("norm", &Options::norm, one_of({"layer", "rms"}), "what stands before each part")
      .key("activation",
           &Options::activation,
           one_of({"gelu", "swiglu"}),
           "what is inside of a perceptron; swiglu is gated")
      .key("kv_heads",
           &Options::kv_heads,
           at_least(0),
           "heads of keys and values, each shared by several of the queries; 0: one for each")
      .key("hidden",
           &Options::hidden,
           at_least(0),
           "width of a perceptron; 0: 4 times the width, or 8/3 of it with swiglu")
      .key("bias", &Options::bias, "whether linear layers have a bias")
      .key("rotary_base",
           &Options::rotary_base,
           greater_than(1),
           "how slowly the slowest pair of rotary positions turns")
      .key("recompute",
           &Options::recompute,
           "true: the backward pass computes each block again, which takes less memory and more "
           "time")
      .key_of("loss", &Options::loss, LossOption(losses), "what the model is trained for");
}

}  // namespace rondo
