#include "models/builtin/autoencoder.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/randn_like.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/tanh.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "core/error.h"
#include "core/require.h"
#include "metrics/mean.h"
#include "models/losses/loss_option.h"
#include "models/losses/value_losses.h"
#include "models/module_model.h"
#include "models/register.h"

namespace rondo {

namespace {

/// Linear layers with an activation between them.
class Stack final : public torch::nn::Module {
 public:
  Stack(const std::vector<int64_t>& sizes, std::string activation)
      : activation_(std::move(activation)) {
    for (size_t i = 0; i + 1 < sizes.size(); ++i) {
      const torch::nn::Linear layer(sizes[i], sizes[i + 1]);
      layers_.push_back(register_module("layer" + std::to_string(i), layer));
    }
  }

  at::Tensor forward(at::Tensor x) {
    for (size_t i = 0; i < layers_.size(); ++i) {
      x = layers_[i](i == 0 ? x : activate(x));
    }
    return x;
  }

 private:
  at::Tensor activate(const at::Tensor& x) const {
    if (activation_ == "relu") {
      return at::relu(x);
    }
    return activation_ == "gelu" ? at::gelu(x) : at::tanh(x);
  }

  std::string activation_;
  std::vector<torch::nn::Linear> layers_;
};

struct CoderOptions {
  std::vector<int64_t> sizes;
  std::string activation;
  std::string input;
  Factory<Criterion> loss;
  int64_t codes_per_latent;  ///< numbers that the encoder gives for each latent one
};

/// Encoder, decoder, and how far apart a sample and its reconstruction are.
class Coder final : public torch::nn::Module {
 public:
  explicit Coder(const CoderOptions& options)
      : input_(options.input),
        loss_(options.loss ? options.loss.make() : std::make_unique<MseLoss>()) {
    std::vector<int64_t> sizes = options.sizes;
    std::reverse(sizes.begin(), sizes.end());
    decoder_ = register_module("decoder", std::make_shared<Stack>(sizes, options.activation));
    std::reverse(sizes.begin(), sizes.end());
    sizes.back() *= options.codes_per_latent;
    encoder_ = register_module("encoder", std::make_shared<Stack>(sizes, options.activation));
    detail::require(
        loss_->targets() != Criterion::Targets::Classes && loss_->outputs_per_value() == 1,
        "Autoencoder: loss",
        "a loss of values or shares",
        options.loss ? options.loss.name() : "");
  }

  const at::Tensor& sample(const Batch& batch) const { return batch[input_]; }

  at::Tensor encode(const Batch& batch) { return encoder_->forward(sample(batch).flatten(1)); }

  /// What the decoder gives, before the sigmoid of a loss of shares.
  at::Tensor raw(const at::Tensor& latent) { return decoder_->forward(latent); }

  at::Tensor finished(const at::Tensor& raw) const {
    return loss_->targets() == Criterion::Targets::Shares ? raw.sigmoid() : raw;
  }

  at::Tensor loss(const at::Tensor& raw, const Batch& batch) const {
    return loss_->mean(raw, sample(batch).flatten(1), input_);
  }

 private:
  std::string input_;
  std::unique_ptr<Criterion> loss_;
  std::shared_ptr<Stack> encoder_;
  std::shared_ptr<Stack> decoder_;
};

class Plain final : public ModuleModel {
 public:
  explicit Plain(const Autoencoder::Options& options)
      : coder_(register_module(
            "coder",
            std::make_shared<Coder>(CoderOptions{
                options.sizes, options.activation, options.input, options.loss, 1}))) {}

  Outputs forward(const Batch& batch) override {
    const at::Tensor latent = coder_->encode(batch);
    const at::Tensor raw = coder_->raw(latent);
    return {{"loss", coder_->loss(raw, batch)},
            {"reconstruction", coder_->finished(raw).view_as(coder_->sample(batch))},
            {"latent", latent}};
  }

  Coder& coder() { return *coder_; }

 private:
  std::shared_ptr<Coder> coder_;
};

class Variational final : public ModuleModel {
 public:
  explicit Variational(const Vae::Options& options)
      : beta_(options.beta),
        coder_(register_module(
            "coder",
            std::make_shared<Coder>(CoderOptions{
                options.sizes, options.activation, options.input, options.loss, 2}))) {}

  Outputs forward(const Batch& batch) override {
    const std::vector<at::Tensor> code = coder_->encode(batch).chunk(2, 1);
    const at::Tensor& mean = code[0];
    const at::Tensor& log_variance = code[1];
    const at::Tensor latent =
        is_training() ? mean + (log_variance * 0.5).exp() * at::randn_like(mean) : mean;
    const at::Tensor raw = coder_->raw(latent);
    const auto numbers = static_cast<double>(raw.size(1));
    const at::Tensor distance = coder_->loss(raw, batch) * numbers;
    const at::Tensor divergence =
        (mean.square() + log_variance.exp() - log_variance - 1).sum(1).mean() * 0.5;
    return {{"loss", distance + divergence * beta_},
            {"reconstruction", coder_->finished(raw).view_as(coder_->sample(batch))},
            {"latent", latent},
            {"reconstruction_loss", distance},
            {"divergence", divergence}};
  }

  std::vector<Factory<Metric>> metrics() const override {
    return {use<Mean>({"reconstruction_loss"}), use<Mean>({"divergence"})};
  }

  Coder& coder() { return *coder_; }

 private:
  double beta_;
  std::shared_ptr<Coder> coder_;
};

template <class Options>
void check_layers(const char* model, const Options& options) {
  const std::vector<int64_t>& sizes = options.sizes;
  detail::require(sizes.size() >= 2 &&
                      std::all_of(sizes.begin(), sizes.end(), [](int64_t n) { return n >= 1; }),
                  fmt::format("{}: sizes", model),
                  "at least 2 numbers, each >= 1",
                  fmt::format("{}", sizes));
  detail::require(
      options.activation == "relu" || options.activation == "gelu" || options.activation == "tanh",
      fmt::format("{}: activation", model),
      "\"relu\", \"gelu\" or \"tanh\"",
      options.activation);
}

/// The keys that both have.
template <class T>
KeyTable<typename T::Options>& add(Registry<Model>& registry,
                                   const Registry<Criterion>& losses,
                                   const char* name,
                                   const char* doc) {
  using Options = typename T::Options;
  return registry.add<T>(name, doc)
      .key("sizes",
           &Options::sizes,
           each(2, at_least(1)),
           "numbers of a sample, hidden units …, latent numbers")
      .key("activation",
           &Options::activation,
           one_of({"relu", "gelu", "tanh"}),
           "what stands between two layers")
      .key("input", &Options::input, "name in the batch: [B, …], flattened from dimension 1")
      .key_of("loss",
              &Options::loss,
              LossOption(losses),
              "how far a reconstruction is from its sample, instead of MSE");
}

}  // namespace

void Autoencoder::check(const Options& options) {
  check_layers("Autoencoder", options);
}

Autoencoder::Autoencoder(const Options& options)
    : WrappedModel((check(options), std::make_unique<Plain>(options))) {}

at::Tensor Autoencoder::decode(const at::Tensor& latent) {
  Coder& coder = static_cast<Plain&>(module()).coder();
  return coder.finished(coder.raw(latent));
}

void Vae::check(const Options& options) {
  check_layers("Vae", options);
  detail::require(options.beta >= 0, "Vae: beta", ">= 0", options.beta);
}

Vae::Vae(const Options& options)
    : WrappedModel((check(options), std::make_unique<Variational>(options))) {}

at::Tensor Vae::decode(const at::Tensor& latent) {
  Coder& coder = static_cast<Variational&>(module()).coder();
  return coder.finished(coder.raw(latent));
}

void register_autoencoder(Registry<Model>& registry, const Registry<Criterion>& losses) {
  add<Autoencoder>(registry, losses, "Autoencoder", "Compresses samples and reconstructs them.");
  add<Vae>(registry, losses, "Vae", "Variational autoencoder, which can make new samples.")
      .key("beta", &Vae::Options::beta, at_least(0), "what the divergence counts in the loss");
}

}  // namespace rondo
