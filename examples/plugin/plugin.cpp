// A callback, a model and a data set of a user's own, as a plugin for configs.

#include <ATen/ATen.h>
#include <rondo/module.h>
#include <rondo/plugin.h>
#include <torch/nn/modules/linear.h>

#include "grad_norm.h"
#include "squared_relu.h"

namespace {

using rondo::Batch;
using rondo::Outputs;
using rondo::Sample;

/// Numbers and their parity.
struct Parity final : rondo::Dataset {
  int64_t size() const override { return 4096; }

  Sample get(int64_t index) const override {
    return {{"image", at::full({1}, static_cast<double>(index % 16) / 16.0)},
            {"label", at::full({}, index % 2)}};
  }
};

/// Two layers of a chosen width.
struct TwoLayer final : rondo::ModuleModel {
  struct Options {
    int64_t width = 128;
  };

  explicit TwoLayer(const Options& options) : in(1, options.width), out(options.width, 2) {
    register_module("in", in);
    register_module("out", out);
  }

  Outputs forward(const Batch& batch) override {
    const at::Tensor logits = out(squared_relu(in(batch["image"].flatten(1))));
    return {{"loss", at::cross_entropy_loss(logits, batch["label"])}, {"logits", logits}};
  }

  torch::nn::Linear in;
  torch::nn::Linear out;
};

}  // namespace

RONDO_PLUGIN(registry) {
  registry.callbacks.add<GradNorm>("GradNorm", "Logs the joint norm of the gradients.");
  registry.datasets.add<Parity>("Parity", "Numbers and their parity.");
  registry.models.add<TwoLayer>("TwoLayer", "Two layers.")
      .key("width", &TwoLayer::Options::width, rondo::at_least(1), "hidden units");
}
