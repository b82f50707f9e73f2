#pragma once

// A small DCGAN: a generator that draws pictures, a critic that tells them from real ones, and a
// training step in which each has an optimizer.

#include <ATen/ATen.h>
#include <rondo/module.h>
#include <rondo/rondo.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <string>

/// Pictures of one channel, float in [0, 1], whose sides are a multiple of 4.
/// Source: Radford et al. 2016, arXiv:1511.06434
struct Dcgan final : rondo::ModuleModel {
  struct Options {
    int64_t image_size = 28;
    int64_t noise = 16;
    int64_t width = 8;
  };

  explicit Dcgan(const Options& options) : options_(options) {
    using torch::nn::Conv2d;
    using torch::nn::Conv2dOptions;
    using torch::nn::ConvTranspose2d;
    using torch::nn::ConvTranspose2dOptions;
    const int64_t width = options.width;
    const int64_t side = options.image_size / 4;
    seed = register_module("generator_seed",
                           torch::nn::Linear(options.noise, 2 * width * side * side));
    norm = register_module("generator_norm", torch::nn::BatchNorm2d(2 * width));
    grow = register_module(
        "generator_grow",
        ConvTranspose2d(ConvTranspose2dOptions(2 * width, width, 4).stride(2).padding(1)));
    draw =
        register_module("generator_draw",
                        ConvTranspose2d(ConvTranspose2dOptions(width, 1, 4).stride(2).padding(1)));
    look = register_module("critic_look", Conv2d(Conv2dOptions(1, width, 4).stride(2).padding(1)));
    shrink = register_module("critic_shrink",
                             Conv2d(Conv2dOptions(width, 2 * width, 4).stride(2).padding(1)));
    answer = register_module("critic_answer", torch::nn::Linear(2 * width * side * side, 1));
  }

  /// \return [count, 1, image_size, image_size]
  at::Tensor generate(int64_t count) {
    const int64_t side = options_.image_size / 4;
    const at::Tensor seeds = seed(at::randn({count, options_.noise}, seed->weight.options()));
    const at::Tensor small = norm(seeds.view({count, 2 * options_.width, side, side})).relu();
    return draw(grow(small).relu()).sigmoid();
  }

  /// \return one logit a picture, high for real ones: [count]
  at::Tensor judge(const at::Tensor& pictures) {
    const at::Tensor seen = at::leaky_relu(look(pictures), 0.2);
    return answer(at::leaky_relu(shrink(seen), 0.2).flatten(1)).flatten();
  }

  /// In a validation: new pictures.
  rondo::Outputs forward(const rondo::Batch& batch) override {
    return {{"image", generate(batch.size())}};
  }

  torch::nn::Linear seed{nullptr};
  torch::nn::BatchNorm2d norm{nullptr};
  torch::nn::ConvTranspose2d grow{nullptr};
  torch::nn::ConvTranspose2d draw{nullptr};
  torch::nn::Conv2d look{nullptr};
  torch::nn::Conv2d shrink{nullptr};
  torch::nn::Linear answer{nullptr};

 private:
  Options options_;
};

/// The critic learns to tell real pictures from drawn ones; every so many updates the generator
/// learns to deceive it.
/// Source: Goodfellow et al. 2014, arXiv:1406.2661, with the generator's loss of section 3
struct GanStep final : rondo::TrainStep {
  struct Options {
    int64_t critic_updates = 1;  // for one of the generator
  };

  explicit GanStep(const Options& options) : options_(options) {}

  std::string kind(const rondo::State& state) const override {
    const int64_t next = state.timestamp.update + 1;
    return next % options_.critic_updates == 0 ? "" : "critic";
  }

  rondo::Outputs run(rondo::StepContext& step, const rondo::Batch& batch) override {
    rondo::Outputs outputs = train_critic(step, batch);
    if (step.kind() == "critic") {
      return outputs;
    }
    rondo::Outputs of_generator = train_generator(step, batch);
    outputs.set("loss/generator", of_generator["loss/generator"]);
    outputs.set("loss", outputs["loss"] + of_generator["loss"]);
    return outputs;
  }

 private:
  static at::Tensor against(const at::Tensor& logits, double answer) {
    return at::binary_cross_entropy_with_logits(logits, at::full_like(logits, answer));
  }

  static rondo::Outputs train_critic(rondo::StepContext& step, const rondo::Batch& batch) {
    auto& gan = step.model_as<Dcgan>();
    rondo::Outputs outputs = step.forward(batch, [&](const rondo::Batch& input) {
      const at::Tensor drawn = gan.generate(input.size()).detach();
      const at::Tensor loss =
          against(gan.judge(input["image"]), 1.0) + against(gan.judge(drawn), 0.0);
      return rondo::Outputs{{"loss/critic", loss}};
    });
    step.backward(outputs, {"critic"});
    step.update("critic");
    return outputs;
  }

  static rondo::Outputs train_generator(rondo::StepContext& step, const rondo::Batch& batch) {
    auto& gan = step.model_as<Dcgan>();
    rondo::Outputs outputs = step.forward(batch, [&](const rondo::Batch& input) {
      return rondo::Outputs{
          {"loss/generator", against(gan.judge(gan.generate(input.size())), 1.0)}};
    });
    step.backward(outputs, {"generator"});
    step.update("generator");
    return outputs;
  }

  Options options_;
};
