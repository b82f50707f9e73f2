#include "callbacks/algorithms/stochastic_depth.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/module.h>

#include <algorithm>

#include "callbacks/algorithms/register.h"
#include "callbacks/core/run_plan.h"
#include "core/error.h"
#include "core/glob.h"
#include "core/registry.h"
#include "core/require.h"
#include "trainer/trainer.h"

namespace rondo {

StochasticDepth::StochasticDepth(const Options& options) : options_(options) {
  detail::require(!options.layers.empty(), "StochasticDepth: layers", "at least one glob", "none");
  detail::require(options.stochastic_method == "block" || options.stochastic_method == "sample",
                  "StochasticDepth: stochastic_method",
                  "\"block\" or \"sample\"",
                  options.stochastic_method);
  detail::require(options.drop_rate >= 0 && options.drop_rate < 1,
                  "StochasticDepth: drop_rate",
                  "in [0, 1)",
                  options.drop_rate);
  detail::require(options.drop_distribution == "linear" || options.drop_distribution == "uniform",
                  "StochasticDepth: drop_distribution",
                  "\"linear\" or \"uniform\"",
                  options.drop_distribution);
  detail::require(options.drop_warmup >= 0 && options.drop_warmup < 1,
                  "StochasticDepth: drop_warmup",
                  "in [0, 1)",
                  options.drop_warmup);
}

void StochasticDepth::change(torch::nn::Module& model) {
  std::vector<torch::nn::Module*> ends;
  for (const auto& item : model.named_modules("", /*include_self=*/false)) {
    if (matches_any(options_.layers, item.key())) {
      ends.push_back(item.value().get());
    }
  }
  if (ends.empty()) {
    throw UsageError(fmt::format(
        "no layer of the model has a name like {}; set layers to the last layers of its branches",
        fmt::join(options_.layers, ", ")));
  }
  for (size_t i = 0; i < ends.size(); ++i) {
    const double share = options_.drop_distribution == "uniform"
                             ? 1.0
                             : static_cast<double>(i + 1) / static_cast<double>(ends.size());
    replace(*ends[i], [this, end = ends[i], rate = share * options_.drop_rate](const auto& layer) {
      const at::Tensor output = layer(layer.input());
      const at::Tensor keep = 1.0 - warmth_ * rate;
      if (!end->is_training()) {
        return output * keep.to(output.scalar_type());
      }
      std::vector<int64_t> shape(static_cast<size_t>(output.dim()), 1);
      if (options_.stochastic_method == "sample") {
        shape[0] = output.size(0);
      }
      return output * at::rand(shape, warmth_.options()).lt(keep).to(output.scalar_type());
    });
  }
}

void StochasticDepth::post_setup(Trainer& trainer) {
  const double begins_with = options_.drop_warmup > 0 ? 0.0 : 1.0;
  warmth_ =
      at::full({},
               begins_with,
               at::TensorOptions().dtype(at::kFloat).device(trainer.state().backend->device()));
}

void StochasticDepth::on_train_batch_start(Trainer& trainer, Model&, const Batch&, int64_t) {
  const State& state = trainer.state();
  if (options_.drop_warmup > 0 && state.plan != nullptr) {
    const double done = state.plan->elapsed_share(state.timestamp) / options_.drop_warmup;
    warmth_.fill_(std::min(done, 1.0));
  }
}

void register_stochastic_depth(Registry<Algorithm>& registry) {
  using Options = StochasticDepth::Options;
  registry.add<StochasticDepth>("StochasticDepth", "Leaves out residual branches at random.")
      .key("layers", &Options::layers, "globs of the last layers of branches")
      .key("stochastic_method",
           &Options::stochastic_method,
           one_of({"block", "sample"}),
           "whether a branch is left out for a batch, or for each sample")
      .key("drop_rate", &Options::drop_rate, below_one(), "how often the last branch is left out")
      .key("drop_distribution",
           &Options::drop_distribution,
           one_of({"linear", "uniform"}),
           "whether the rate grows from the first branch to the last")
      .key("drop_warmup",
           &Options::drop_warmup,
           below_one(),
           "share of the run in which the rates grow from 0");
}

}  // namespace rondo
