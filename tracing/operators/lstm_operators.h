#pragma once

#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <tuple>

namespace rondo {

/// Defines `lstm_layer` and `lstm_layer_backward`, by which a pass replaces LibTorch's layers where
/// the bits are the same: kernels/recurrent/lstm_layer.h runs them. Where the machine cannot run
/// that, which a step from a file may find, they are `LstmByOperators`. `lstm_table_backward` is
/// the gradient of a layer whose inputs an embedding looks up, down to its table.
void define_lstm_operators(torch::Library& library);

/// What a layer of LSTM gives: y of [steps, batch, hidden], the last states and cells, and what its
/// gradient needs: [steps, 6, batch, hidden].
using LstmResults = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

/// Gradients of the input, the two weights, the two biases, the first states and the first cells.
using LstmGradients =
    std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

/// The same by operators of LibTorch. Its bits are others.
struct LstmByOperators {
  static LstmResults forward(const at::Tensor& x,
                             const at::Tensor& input_weight,
                             const at::Tensor& state_weight,
                             const at::Tensor& input_bias,
                             const at::Tensor& state_bias,
                             const at::Tensor& first_states,
                             const at::Tensor& first_cells);

  static LstmGradients backward(const c10::optional<at::Tensor>& dy,
                                const c10::optional<at::Tensor>& dlast_states,
                                const c10::optional<at::Tensor>& dlast_cells,
                                const at::Tensor& x,
                                const at::Tensor& input_weight,
                                const at::Tensor& state_weight,
                                const at::Tensor& first_states,
                                const at::Tensor& first_cells,
                                const at::Tensor& y,
                                const at::Tensor& kept);
};

}  // namespace rondo
