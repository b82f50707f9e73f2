#pragma once

// Callbacks that own tensors of the step: docs/hooks.md shows the first one.

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/module.h>

#include <string>

#include <rondo/models/model_state.h>
#include <rondo/rondo.h>

namespace rondo::test {

/// An exponential moving average of the weights.
class WeightAverage final : public Callback {
 public:
  struct Options {
    double decay = 0.99;
  };

  explicit WeightAverage(const Options& options) : options_(options) {}

  void post_setup(Trainer& trainer) override {
    for (const auto& [name, weight] : named_parameters(trainer.state().model->module())) {
      average_.emplace_back(name, weight.detach().clone());
    }
  }

  NamedTensors captured_state() override { return average_; }

  void on_after_optimizer_step(Trainer&, Model& model, Optimizer&) override {
    const at::NoGradGuard no_grad;
    auto average = average_.begin();
    for (const auto& [name, weight] : named_parameters(model.module())) {
      (average++)->second.lerp_(weight, 1.0 - options_.decay);  // in place
    }
  }

 private:
  Options options_;
  NamedTensors average_;
};

/// Gives the model its inputs with mean 0 and deviation 1, by a running mean and variance.
class InputNormaliser final : public Callback {
 public:
  struct Options {
    std::string input = "x";
    int64_t features = 4;
  };

  explicit InputNormaliser(const Options& options)
      : options_(options),
        mean_(at::zeros({options.features})),
        variance_(at::ones({options.features})) {}

  NamedTensors captured_state() override { return {{"mean", mean_}, {"variance", variance_}}; }

  void on_before_forward(Trainer&, Model& model, const Batch&, Batch& input) override {
    const at::NoGradGuard no_grad;
    const at::Tensor x = input[options_.input];
    if (model.module().is_training()) {
      mean_.lerp_(x.mean(0), 0.1);
      variance_.lerp_((x - mean_).square().mean(0), 0.1);
    }
    input.set(options_.input, (x - mean_) / (variance_ + 1e-5).sqrt());
  }

 private:
  Options options_;
  at::Tensor mean_;
  at::Tensor variance_;
};

/// Counts training steps, in the step.
class StepCounter final : public Callback {
 public:
  NamedTensors captured_state() override { return {{"steps", steps_}}; }

  void on_train_step_end(Trainer&, Model&, const Outputs&, const Batch&) override {
    steps_.add_(1);
  }

 private:
  at::Tensor steps_ = at::zeros({}, at::kLong);
};

}  // namespace rondo::test
