#include "models/blocks/recurrence.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

namespace rondo::detail {

Recurrence::Recurrence(const Options& options) : options_(options) {
  const bool is_gru = options.cell == "gru";
  const int64_t gates = (is_gru ? 3 : 4) * options.width;
  for (int64_t i = 0; i < options.layers; ++i) {
    const auto hidden = torch::nn::LinearOptions(options.width, gates).bias(is_gru);
    layers_.push_back({torch::nn::Linear(i == 0 ? options.inputs : options.width, gates),
                       torch::nn::Linear(hidden)});
  }
}

void Recurrence::add_to(torch::nn::Module& owner) {
  for (size_t i = 0; i < layers_.size(); ++i) {
    owner.register_module("input" + std::to_string(i), layers_[i].input);
    owner.register_module("hidden" + std::to_string(i), layers_[i].hidden);
  }
}

at::Tensor Recurrence::forward(at::Tensor x, bool is_training) {
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (i > 0) {
      x = at::dropout(x, options_.dropout, is_training);
    }
    x = options_.cell == "gru" ? run_gru(layers_[i], x) : run_lstm(layers_[i], x);
  }
  return x;
}

at::Tensor Recurrence::run_lstm(Layer& layer, const at::Tensor& x) const {
  const at::Tensor from_input = layer.input(x);  // [B, T, 4 · width]
  at::Tensor hidden = at::zeros({x.size(0), options_.width}, x.options());
  at::Tensor cell = hidden;
  std::vector<at::Tensor> steps;
  for (int64_t t = 0; t < x.size(1); ++t) {
    const at::Tensor sum = from_input.select(1, t) + layer.hidden(hidden);
    const std::vector<at::Tensor> gates = sum.chunk(4, 1);
    cell = gates[1].sigmoid() * cell + gates[0].sigmoid() * gates[2].tanh();
    hidden = gates[3].sigmoid() * cell.tanh();
    steps.push_back(hidden);
  }
  return at::stack(steps, 1);
}

at::Tensor Recurrence::run_gru(Layer& layer, const at::Tensor& x) const {
  const at::Tensor from_input = layer.input(x);  // [B, T, 3 · width]
  at::Tensor hidden = at::zeros({x.size(0), options_.width}, x.options());
  std::vector<at::Tensor> steps;
  for (int64_t t = 0; t < x.size(1); ++t) {
    const std::vector<at::Tensor> in = from_input.select(1, t).chunk(3, 1);
    const std::vector<at::Tensor> state = layer.hidden(hidden).chunk(3, 1);
    const at::Tensor reset = (in[0] + state[0]).sigmoid();
    const at::Tensor update = (in[1] + state[1]).sigmoid();
    const at::Tensor fresh = (in[2] + reset * state[2]).tanh();
    hidden = fresh + update * (hidden - fresh);
    steps.push_back(hidden);
  }
  return at::stack(steps, 1);
}

}  // namespace rondo::detail
