#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "tracing/kernels/products/gemm.h"
#include "tracing/kernels/products/panel_product.h"
#include "tracing/kernels/recurrent/distinct_rows.h"
#include "tracing/kernels/recurrent/lstm_shape.h"
#include "tracing/onednn/onednn_call.h"

namespace rondo {

// A layer of LSTM on whole sequences, with the bits of oneDNN's, by which LibTorch 2 runs one. A
// step is a product of few rows with the same weights as the step before: they are packed once for
// all steps, which oneDNN does not do in training, and what a step computes stays in the cache for
// the next one. Gradients of weights are a product for all steps. Inputs that repeat, as those of
// an embedding of few tokens do, are multiplied by the weights once.
// Tensors are float32, row after row: the input [steps, batch, inputs], states [batch, hidden],
// weights [4 · hidden, inputs] and [4 · hidden, hidden], biases [4 · hidden], in LibTorch's order
// of gates.
// Source: Appleyard et al. 2016, Optimizing Performance of Recurrent Neural Networks on GPUs, for
// the products of several steps at once.

/// Whether this machine can run such a layer: it needs AVX-512 and oneDNN.
bool can_run_lstm(const LstmShape& shape);

class LstmLayer {
 public:
  struct Tensors {
    const float* x;
    const float* input_weight;
    const float* state_weight;
    const float* input_bias;
    const float* state_bias;
    const float* first_states;
    const float* first_cells;
    float* y;  ///< [steps, batch, hidden]
    float* last_states;
    float* last_cells;
    float* kept;  ///< [steps, 6, batch, hidden], for the gradient
  };

  /// \param shape  such that `can_run_lstm`
  explicit LstmLayer(const LstmShape& shape);

  void run(const Tensors& tensors);

  int64_t bytes() const;

 private:
  void multiply_inputs(const float* x, int64_t step, float* gates);
  void multiply_distinct(const float* x);
  void put_distinct(int64_t step, float* gates) const;

  LstmShape shape_;
  int64_t steps_at_once_;  // whose inputs are multiplied together
  PackedPanels input_weight_;
  PackedPanels state_weight_;
  std::unique_ptr<OneDnnCall> sigmoid_;  // of three gates
  std::unique_ptr<OneDnnCall> tanh_;     // of one
  std::vector<float> bias_;
  at::Tensor gates_;  // [steps at once, batch, 4 · hidden]
  DistinctRows distinct_;
  std::vector<float> distinct_inputs_;
  at::Tensor distinct_products_;  // [distinct, 4 · hidden]
};

/// Its gradient. Inputs may be known to be rows of a table, as an embedding looks them up; then the
/// gradients of gates are added up for each row of the table, and are multiplied by weights and
/// inputs once for each. The sums have another order than for inputs that are not known to be that.
class LstmLayerGradient {
 public:
  /// [steps, batch, hidden], in whatever order steps and sequences lie: a module whose batch comes
  /// first hands a transposed gradient back.
  struct Sequences {
    const float* numbers;
    int64_t step;  ///< from one to the next
    int64_t sequence;
  };

  /// Which rows of a table the inputs are.
  struct Lookup {
    const int64_t* numbers = nullptr;
    int64_t step = 0;  ///< from one to the next
    int64_t sequence = 0;
    int64_t padding = -1;  ///< a row that gets no gradient; -1: none
  };

  struct Tensors {
    Sequences dy;               ///< null: none comes
    const float* dlast_states;  ///< null: none comes
    const float* dlast_cells;   ///< null: none comes
    const float* x;             ///< or the table, [rows, inputs]
    const float* input_weight;
    const float* state_weight;
    const float* first_states;
    const float* first_cells;
    const float* y;
    const float* kept;
    float* dx;  ///< or the table's
    float* dinput_weight;
    float* dstate_weight;
    float* dinput_bias;
    float* dstate_bias;
    float* dfirst_states;
    float* dfirst_cells;
    Lookup lookup = {};  ///< where there is a table
  };

  /// \param shape       such that `can_run_lstm`
  /// \param table_rows  of the table that inputs are rows of; 0: there is none
  explicit LstmLayerGradient(const LstmShape& shape, int64_t table_rows = 0);

  /// \throws c10::IndexError  where a number is none of a row of the table
  void run(const Tensors& tensors);

  int64_t bytes() const;

 private:
  bool has_table() const { return table_rows_ > 0; }

  void run_back(const Tensors& tensors);
  void add_up_rows(const Tensors& tensors);
  void differentiate_table(const Tensors& tensors) const;
  void multiply_by_states(const Tensors& tensors);

  LstmShape shape_;
  int64_t table_rows_;
  int64_t steps_at_once_;  // whose inputs' gradients are computed together
  PackedPanels input_weight_;
  PackedPanels state_weight_;
  Gemm by_input_;             // gradient of the inputs' weight
  Gemm by_states_;            // of the states': all steps but the first
  Gemm by_first_states_;      // the first step
  std::vector<float> zeros_;  // [batch, hidden]
  at::Tensor dgates_;         // [steps, batch, 4 · hidden]
  at::Tensor sums_;           // of those, [table rows, 4 · hidden]
  at::Tensor looked_up_;      // the table's rows that were; zeros for the others
};

}  // namespace rondo
