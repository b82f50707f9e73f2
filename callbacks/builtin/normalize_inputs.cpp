#include "callbacks/builtin/normalize_inputs.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/module.h>

#include "callbacks/core/virtual_ranks.h"
#include "core/error.h"
#include "core/registry.h"
#include "core/require.h"
#include "models/model.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

/// The dimensions of `values` that one number of the statistics stands for.
std::vector<int64_t> shared_dimensions(const at::Tensor& values,
                                       const std::vector<int64_t>& shape,
                                       const std::string& name) {
  const int64_t leading = values.dim() - static_cast<int64_t>(shape.size());
  std::vector<int64_t> shared;
  bool fits = leading >= 0;
  for (int64_t i = 0; fits && i < values.dim(); ++i) {
    const int64_t wanted = i < leading ? 1 : shape[static_cast<size_t>(i - leading)];
    fits = wanted == 1 || wanted == values.size(i);
    if (wanted == 1) {
      shared.push_back(i);
    }
  }
  if (!fits || leading < 1) {
    throw ShapeError(fmt::format(
        "NormalizeInputs: \"{}\" has the shape [{}], which has no rows of [{}]; set shape",
        name,
        fmt::join(values.sizes(), ", "),
        fmt::join(shape, ", ")));
  }
  return shared;
}

}  // namespace

NormalizeInputs::NormalizeInputs(const Options& options) : options_(options) {
  detail::require(!options_.input.empty(), "NormalizeInputs: input", "given", "\"\"");
  for (const int64_t size : options_.shape) {
    detail::require(size >= 1, "NormalizeInputs: shape", "sizes >= 1", size);
  }
  detail::require(options_.limit > 0, "NormalizeInputs: limit", "> 0", options_.limit);
  detail::require(options_.epsilon > 0, "NormalizeInputs: epsilon", "> 0", options_.epsilon);
}

void NormalizeInputs::post_setup(Trainer& trainer) {
  if (ranks_of(trainer) != nullptr) {
    throw UsageError(
        "NormalizeInputs: each virtual rank would have statistics of its own part of the data; "
        "scale the data set (scale = \"standard\" of a table), or train with one process and "
        "distributed.virtual_ranks = 1");
  }
  const auto numbers =
      at::TensorOptions().dtype(at::kDouble).device(trainer.state().backend->device());
  count_ = at::zeros({}, numbers);
  mean_ = at::zeros(options_.shape, numbers);
  squares_ = at::zeros(options_.shape, numbers);
}

void NormalizeInputs::on_before_forward(Trainer&, Model& model, const Batch&, Batch& input) {
  const at::NoGradGuard no_grad;
  const at::Tensor given = input[options_.input];
  const at::Tensor values = given.to(at::kDouble);
  if (model.module().is_training()) {
    add(values);
  }
  // Without statistics yet, values stay as they are: the mean is 0 and the variance taken as 1.
  const at::Tensor none = count_.eq(0).to(at::kDouble);
  const at::Tensor variance = squares_ / (count_ + none) + none;
  const at::Tensor scaled = (values - mean_) / (variance + options_.epsilon).sqrt();
  input.set(options_.input,
            scaled.clamp(-options_.limit, options_.limit)
                .to(given.is_floating_point() ? given.scalar_type() : at::kFloat));
}

void NormalizeInputs::add(const at::Tensor& values) {
  const std::vector<int64_t> shared = shared_dimensions(values, options_.shape, options_.input);
  double added = 1;
  for (const int64_t dimension : shared) {
    added *= static_cast<double>(values.size(dimension));
  }
  const at::Tensor mean = values.mean(shared, /*keepdim=*/true);
  const at::Tensor squares = (values - mean).square().sum(shared, /*keepdim=*/true);
  const at::Tensor difference = mean.reshape(options_.shape) - mean_;
  const at::Tensor total = count_ + added;
  squares_.add_(squares.reshape(options_.shape) + difference.square() * count_ * added / total);
  mean_.add_(difference * added / total);
  count_.copy_(total);
}

NamedTensors NormalizeInputs::captured_state() {
  return {{"count", count_}, {"mean", mean_}, {"squares", squares_}};
}

void register_normalize_inputs(Registry<Callback>& registry) {
  using Options = NormalizeInputs::Options;
  registry
      .add<NormalizeInputs>("NormalizeInputs",
                            "Brings an input to mean 0 and deviation 1 with running statistics.")
      .key("input", &Options::input, "its name in the batch")
      .required()
      .key("shape",
           &Options::shape,
           each(0, at_least(1)),
           "of the statistics: the input's last dimensions, 1 where a dimension shares one mean")
      .key("limit",
           &Options::limit,
           greater_than(0),
           "results are cut to this many standard deviations")
      .key("epsilon", &Options::epsilon, greater_than(0), "added to the variance");
}

}  // namespace rondo
