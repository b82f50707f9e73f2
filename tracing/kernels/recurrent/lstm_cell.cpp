// Compiled with -ffp-contract=off (tracing/CMakeLists.txt): sums of products are fused where
// oneDNN fuses them.

#include "tracing/kernels/recurrent/lstm_cell.h"

#include "tracing/kernels/avx512.h"

#if defined(__x86_64__)

#include <algorithm>

#include "tracing/kernels/products/square.h"

namespace rondo::lstm {

namespace {

/// Sixteen of the numbers of a row, or what is left of them.
struct Piece {
  int64_t at;
  __mmask16 mask;

  RONDO_AVX512 Piece(int64_t first, int64_t count)
      : at(first), mask(first_lanes(static_cast<int>(std::min<int64_t>(count - first, kWide)))) {}

  RONDO_AVX512 Floats of(const float* row) const { return _mm512_maskz_loadu_ps(mask, row + at); }

  RONDO_AVX512 void put(float* row, Floats numbers) const {
    _mm512_mask_storeu_ps(row + at, mask, numbers);
  }
};

/// b - a²
RONDO_AVX512 inline Floats less_square(Floats a, Floats b) {
  return _mm512_fnmadd_ps(a, a, b);
}

}  // namespace

RONDO_AVX512 void add_bias(const LstmShape& shape,
                           const float* gates,
                           const float* bias,
                           const Kept& to) {
  float* const places[LstmShape::kGates] = {to.input, to.forget, to.candidate, to.output};
  for (int64_t b = 0; b < shape.batch; ++b) {
    for (int64_t g = 0; g < LstmShape::kGates; ++g) {
      const int64_t column = g * shape.hidden;
      const float* const from = gates + b * shape.row_of_gates() + column;
      float* const row = places[g] + b * shape.hidden;
      for (int64_t i = 0; i < shape.hidden; i += kWide) {
        const Piece piece(i, shape.hidden);
        piece.put(row, _mm512_add_ps(piece.of(from), piece.of(bias + column)));
      }
    }
  }
}

RONDO_AVX512 void update_cells(const LstmShape& shape, const float* before, const Kept& step) {
  for (int64_t i = 0; i < shape.states(); i += kWide) {
    const Piece piece(i, shape.states());
    const Floats stays = _mm512_mul_ps(piece.of(before), piece.of(step.forget));
    piece.put(step.cells, _mm512_fmadd_ps(piece.of(step.input), piece.of(step.candidate), stays));
  }
}

RONDO_AVX512 void show_cells(const LstmShape& shape, const Kept& step, float* states) {
  for (int64_t i = 0; i < shape.states(); i += kWide) {
    const Piece piece(i, shape.states());
    piece.put(states, _mm512_mul_ps(piece.of(step.tanh_of_cells), piece.of(step.output)));
  }
}

RONDO_AVX512 void differentiate_cells(const LstmShape& shape,
                                      const KeptOf<const float>& step,
                                      const CellGradient& gradient) {
  const Floats one = _mm512_set1_ps(1.0F);
  for (int64_t b = 0; b < shape.batch; ++b) {
    const int64_t row = b * shape.hidden;
    const float* const of_result = gradient.of_result + b * gradient.row_of_result;
    float* const of_input = gradient.of_gates + b * shape.row_of_gates();
    float* const of_forget = of_input + shape.hidden;
    float* const of_candidate = of_forget + shape.hidden;
    float* const of_output = of_candidate + shape.hidden;
    for (int64_t i = 0; i < shape.hidden; i += kWide) {
      const Piece piece(i, shape.hidden);
      const Floats input = piece.of(step.input + row);
      const Floats forget = piece.of(step.forget + row);
      const Floats output = piece.of(step.output + row);
      const Floats candidate = piece.of(step.candidate + row);
      const Floats tanh = piece.of(step.tanh_of_cells + row);
      const Floats dh = _mm512_add_ps(piece.of(of_result), piece.of(gradient.of_states + row));
      const Floats through_tanh = _mm512_mul_ps(_mm512_mul_ps(less_square(tanh, one), dh), output);
      const Floats dc = _mm512_add_ps(piece.of(gradient.of_cells + row), through_tanh);
      piece.put(of_output, _mm512_mul_ps(_mm512_mul_ps(less_square(output, output), dh), tanh));
      piece.put(of_input, _mm512_mul_ps(_mm512_mul_ps(less_square(input, input), dc), candidate));
      piece.put(of_forget,
                _mm512_mul_ps(_mm512_mul_ps(less_square(forget, forget), dc),
                              piece.of(gradient.cells_before + row)));
      piece.put(of_candidate, _mm512_mul_ps(less_square(candidate, one), _mm512_mul_ps(input, dc)));
      piece.put(gradient.of_cells + row, _mm512_mul_ps(dc, forget));
    }
  }
}

RONDO_AVX512 void add_row(const LstmShape& shape, const float* row, float* sums) {
  for (int64_t i = 0; i < shape.gates(); i += kWide) {
    const Piece piece(i, shape.gates());
    piece.put(sums, _mm512_add_ps(piece.of(sums), piece.of(row)));
  }
}

RONDO_AVX512 void add_rows(const LstmShape& shape, const float* rows, float* sums) {
  for (int64_t i = 0; i < shape.gates(); i += kWide) {
    const Piece piece(i, shape.gates());
    Floats sum = piece.of(sums);
    for (int64_t b = 0; b < shape.batch; ++b) {
      sum = _mm512_add_ps(sum, piece.of(rows + b * shape.row_of_gates()));
    }
    piece.put(sums, sum);
  }
}

}  // namespace rondo::lstm

#else

namespace rondo::lstm {

void add_bias(const LstmShape&, const float*, const float*, const Kept&) {}

void update_cells(const LstmShape&, const float*, const Kept&) {}

void show_cells(const LstmShape&, const Kept&, float*) {}

void differentiate_cells(const LstmShape&, const KeptOf<const float>&, const CellGradient&) {}

void add_row(const LstmShape&, const float*, float*) {}

void add_rows(const LstmShape&, const float*, float*) {}

}  // namespace rondo::lstm

#endif
