#pragma once

#include <cstdint>

#include "tracing/kernels/recurrent/lstm_shape.h"

namespace rondo::lstm {

// What a layer of LSTM computes element by element in one step of a sequence, in the order of
// oneDNN's cells, so that the bits are the same. They need AVX-512.
// Source: Hochreiter and Schmidhuber 1997, Long Short-Term Memory; src/cpu/x64/rnn of oneDNN 3.7.

/// What a step keeps for its gradient: matrices of [batch, hidden], one after another.
template <class Float>
struct KeptOf {
  Float* input;      ///< gate: how much of the candidate is let in
  Float* forget;     ///< gate: how much of the last cells stays
  Float* output;     ///< gate: how much of the cells is shown
  Float* candidate;  ///< for the cells
  Float* cells;
  Float* tanh_of_cells;

  /// \param all  what all steps keep
  KeptOf(const LstmShape& shape, int64_t step, Float* all) {
    Float* next = all + step * LstmShape::kKept * shape.states();
    for (Float** matrix : {&input, &forget, &output, &candidate, &cells, &tanh_of_cells}) {
      *matrix = next;
      next += shape.states();
    }
  }
};

using Kept = KeptOf<float>;

/// Adds the bias and puts the gates, [batch, 4 · hidden] as LibTorch orders them (input, forget,
/// candidate, output), where they are kept.
void add_bias(const LstmShape& shape, const float* gates, const float* bias, const Kept& to);

/// The new cells: those before as far as they stay, and the candidate as far as it is let in.
void update_cells(const LstmShape& shape, const float* before, const Kept& step);

/// The new states.
void show_cells(const LstmShape& shape, const Kept& step, float* states);

/// Gradients of one step.
struct CellGradient {
  const float* cells_before;  ///< of the step before
  const float* of_result;     ///< of the layer's result
  int64_t row_of_result;      ///< numbers from one of its rows to the next
  const float* of_states;     ///< what comes back from the next step
  float* of_cells;            ///< the same; becomes what goes back to the step before
  float* of_gates;            ///< [batch, 4 · hidden], before sigmoid and tanh
};

void differentiate_cells(const LstmShape& shape,
                         const KeptOf<const float>& step,
                         const CellGradient& gradient);

/// Adds a row of 4 · hidden numbers to another one.
void add_row(const LstmShape& shape, const float* row, float* sums);

/// Adds the rows of [batch, 4 · hidden] to `sums`, one after another.
void add_rows(const LstmShape& shape, const float* rows, float* sums);

}  // namespace rondo::lstm
