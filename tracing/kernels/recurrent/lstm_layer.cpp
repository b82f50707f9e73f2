#include "tracing/kernels/recurrent/lstm_layer.h"

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <limits>

#include "core/parallel.h"
#include "tracing/kernels/recurrent/lstm_cell.h"
#include "tracing/onednn/activation.h"

namespace rondo {

namespace {

int as_int(int64_t value) {
  return static_cast<int>(value);
}

/// The gradient of a weight, y = dgates^T · x, or that added to y, with dgates of [inner, gates]
/// and x of [inner, columns], as a `Gemm` sees it: column by column.
Gemm gradient_product(const LstmShape& layer, int64_t columns, int64_t inner, bool adds) {
  GemmShape shape;
  shape.transpose_b = true;
  shape.m = shape.lda = shape.ldc = as_int(columns);
  shape.n = as_int(layer.gates());
  shape.ldb = as_int(layer.row_of_gates());
  shape.k = as_int(inner);
  shape.beta = adds ? 1.0F : 0.0F;
  return gemm_without_packing(shape);
}

/// For products with a weight of [rows, columns].
PackedPanels panels_for(int64_t rows, int64_t columns) {
  return {as_int(rows), blocks_without_packing(as_int(columns))};
}

/// Products have enough columns then, and what they make stays in the cache.
int64_t steps_at_once(const LstmShape& shape) {
  constexpr int64_t kColumns = 32;
  return std::clamp<int64_t>(kColumns / shape.batch, 1, shape.steps);
}

at::Tensor rows_of_gates(const LstmShape& shape, int64_t rows) {
  return at::empty({rows, shape.row_of_gates()}, at::kFloat);
}

int64_t bytes_of(const std::vector<float>& numbers) {
  return static_cast<int64_t>(numbers.size() * sizeof(float));
}

}  // namespace

bool can_run_lstm(const LstmShape& shape) {
  const auto is_fit = [](int64_t value) {
    return value > 0 && value <= std::numeric_limits<int16_t>::max();
  };
  return has_onednn() && can_multiply_panels(GemmShape(), {}) && is_fit(shape.steps) &&
         is_fit(shape.batch) && is_fit(shape.inputs) && is_fit(shape.hidden);
}

LstmLayer::LstmLayer(const LstmShape& shape)
    : shape_(shape),
      steps_at_once_(steps_at_once(shape)),
      input_weight_(panels_for(shape.gates(), shape.inputs)),
      state_weight_(panels_for(shape.gates(), shape.hidden)),
      sigmoid_(prepare_sigmoid(3 * shape.states())),
      tanh_(prepare_tanh(shape.states())),
      bias_(static_cast<size_t>(shape.gates())),
      gates_(rows_of_gates(shape, steps_at_once_ * shape.batch)),
      distinct_(shape.rows(), shape.inputs, shape.most_distinct()),
      distinct_inputs_(static_cast<size_t>(shape.most_distinct() * shape.inputs)),
      distinct_products_(rows_of_gates(shape, shape.most_distinct())) {}

void LstmLayer::run(const Tensors& tensors) {
  const OnThisThread scope;
  const auto batch = as_int(shape_.batch);
  const auto hidden = as_int(shape_.hidden);
  const auto row = as_int(shape_.row_of_gates());
  std::transform(tensors.input_bias,
                 tensors.input_bias + shape_.gates(),
                 tensors.state_bias,
                 bias_.begin(),
                 [](float a, float b) { return a + b; });
  input_weight_.pack(tensors.input_weight, as_int(shape_.inputs), /*transposed=*/true);
  state_weight_.pack(tensors.state_weight, hidden, /*transposed=*/true);
  const bool repeats = distinct_.find(tensors.x);
  if (repeats) {
    multiply_distinct(tensors.x);
  }
  const float* states = tensors.first_states;
  const float* cells = tensors.first_cells;
  for (int64_t t = 0; t < shape_.steps; ++t) {
    const lstm::Kept step(shape_, t, tensors.kept);
    float* const shown = tensors.y + t * shape_.states();
    float* const of_step = gates_.data_ptr<float>() + t % steps_at_once_ * batch * row;
    repeats ? put_distinct(t, of_step) : multiply_inputs(tensors.x, t, of_step);
    state_weight_.multiply(states, hidden, batch, of_step, row, /*adds=*/true);
    lstm::add_bias(shape_, of_step, bias_.data(), step);
    sigmoid_->run({step.input, step.input});  // and the two gates behind it
    tanh_->run({step.candidate, step.candidate});
    lstm::update_cells(shape_, cells, step);
    tanh_->run({step.cells, step.tanh_of_cells});
    lstm::show_cells(shape_, step, shown);
    states = shown;
    cells = step.cells;
  }
  std::copy_n(states, shape_.states(), tensors.last_states);
  std::copy_n(cells, shape_.states(), tensors.last_cells);
}

// Those of as many steps as are multiplied together, when it is the first of them.
void LstmLayer::multiply_inputs(const float* x, int64_t step, float* gates) {
  if (step % steps_at_once_ == 0) {
    const auto inputs = as_int(shape_.inputs);
    const int64_t steps = std::min(steps_at_once_, shape_.steps - step);
    input_weight_.multiply(x + step * shape_.batch * inputs,
                           inputs,
                           as_int(steps * shape_.batch),
                           gates,
                           as_int(shape_.row_of_gates()),
                           /*adds=*/false);
  }
}

void LstmLayer::multiply_distinct(const float* x) {
  float* to = distinct_inputs_.data();
  for (const int64_t row : distinct_.firsts()) {
    to = std::copy_n(x + row * shape_.inputs, shape_.inputs, to);
  }
  input_weight_.multiply(distinct_inputs_.data(),
                         as_int(shape_.inputs),
                         as_int(static_cast<int64_t>(distinct_.firsts().size())),
                         distinct_products_.data_ptr<float>(),
                         as_int(shape_.row_of_gates()),
                         /*adds=*/false);
}

void LstmLayer::put_distinct(int64_t step, float* gates) const {
  const int64_t row = shape_.row_of_gates();
  for (int64_t b = 0; b < shape_.batch; ++b) {
    const int64_t distinct = distinct_.of(step * shape_.batch + b);
    std::copy_n(
        distinct_products_.data_ptr<float>() + distinct * row, shape_.gates(), gates + b * row);
  }
}

int64_t LstmLayer::bytes() const {
  return input_weight_.bytes() + state_weight_.bytes() + sigmoid_->bytes() + tanh_->bytes() +
         bytes_of(bias_) + static_cast<int64_t>(gates_.nbytes()) + distinct_.bytes() +
         bytes_of(distinct_inputs_) + static_cast<int64_t>(distinct_products_.nbytes());
}

LstmLayerGradient::LstmLayerGradient(const LstmShape& shape, int64_t table_rows)
    : shape_(shape),
      table_rows_(table_rows),
      steps_at_once_(steps_at_once(shape)),
      input_weight_(panels_for(shape.inputs, shape.gates())),
      state_weight_(panels_for(shape.hidden, shape.gates())),
      by_input_(gradient_product(shape,
                                 shape.inputs,
                                 table_rows > 0 ? table_rows : shape.rows(),
                                 /*adds=*/false)),
      by_states_(gradient_product(shape,
                                  shape.hidden,
                                  std::max<int64_t>(shape.rows() - shape.batch, 1),
                                  /*adds=*/false)),
      by_first_states_(
          gradient_product(shape, shape.hidden, shape.batch, /*adds=*/shape.steps > 1)),
      zeros_(static_cast<size_t>(shape.states())),
      dgates_(rows_of_gates(shape, shape.rows())),
      sums_(rows_of_gates(shape, table_rows)),
      looked_up_(at::empty({table_rows, shape.inputs}, at::kFloat)) {}

void LstmLayerGradient::run(const Tensors& tensors) {
  run_back(tensors);
  if (has_table()) {
    add_up_rows(tensors);
    differentiate_table(tensors);
  } else {
    by_input_.run(tensors.x, dgates_.data_ptr<float>(), tensors.dinput_weight);
  }
  multiply_by_states(tensors);
}

// A row that was not looked up takes no part, even if it is not finite.
void LstmLayerGradient::add_up_rows(const Tensors& tensors) {
  const Lookup& lookup = tensors.lookup;
  sums_.zero_();
  looked_up_.zero_();
  const int64_t row = shape_.row_of_gates();
  const float* of_input = dgates_.data_ptr<float>();
  for (int64_t t = 0; t < shape_.steps; ++t) {
    for (int64_t b = 0; b < shape_.batch; ++b, of_input += row) {
      const int64_t number = lookup.numbers[t * lookup.step + b * lookup.sequence];
      TORCH_CHECK_INDEX(number >= 0 && number < table_rows_,
                        "row ",
                        number,
                        " of step ",
                        t,
                        " of sequence ",
                        b,
                        " is out of range: the table has ",
                        table_rows_);
      lstm::add_row(shape_, of_input, sums_.data_ptr<float>() + number * row);
      std::copy_n(tensors.x + number * shape_.inputs,
                  shape_.inputs,
                  looked_up_.data_ptr<float>() + number * shape_.inputs);
    }
  }
}

void LstmLayerGradient::differentiate_table(const Tensors& tensors) const {
  const float* const sums = sums_.data_ptr<float>();
  const auto inputs = as_int(shape_.inputs);
  by_input_.run(looked_up_.data_ptr<float>(), sums, tensors.dinput_weight);
  input_weight_.multiply(sums,
                         as_int(shape_.row_of_gates()),
                         as_int(table_rows_),
                         tensors.dx,
                         inputs,
                         /*adds=*/false);
  if (tensors.lookup.padding >= 0) {
    std::fill_n(tensors.dx + tensors.lookup.padding * inputs, inputs, 0.0F);
  }
}

// From the last step to the first one.
void LstmLayerGradient::run_back(const Tensors& tensors) {
  using Kept = lstm::KeptOf<const float>;
  const auto batch = as_int(shape_.batch);
  const auto inputs = as_int(shape_.inputs);
  const auto hidden = as_int(shape_.hidden);
  const auto row = as_int(shape_.row_of_gates());
  const auto begin_with = [&](const float* given, float* gradient) {
    std::copy_n(given != nullptr ? given : zeros_.data(), shape_.states(), gradient);
  };
  const Sequences dy =
      tensors.dy.numbers != nullptr ? tensors.dy : Sequences{zeros_.data(), 0, shape_.hidden};
  begin_with(tensors.dlast_states, tensors.dfirst_states);
  begin_with(tensors.dlast_cells, tensors.dfirst_cells);
  std::fill_n(tensors.dinput_bias, shape_.gates(), 0.0F);
  input_weight_.pack(tensors.input_weight, inputs, /*transposed=*/false);
  state_weight_.pack(tensors.state_weight, hidden, /*transposed=*/false);
  for (int64_t t = shape_.steps - 1; t >= 0; --t) {
    const Kept before(shape_, std::max<int64_t>(t - 1, 0), tensors.kept);
    float* const dgates = dgates_.data_ptr<float>() + t * batch * row;
    lstm::differentiate_cells(shape_,
                              Kept(shape_, t, tensors.kept),
                              {t > 0 ? before.cells : tensors.first_cells,
                               dy.numbers + t * dy.step,
                               dy.sequence,
                               tensors.dfirst_states,
                               tensors.dfirst_cells,
                               dgates});
    lstm::add_rows(shape_, dgates, tensors.dinput_bias);
    state_weight_.multiply(dgates, row, batch, tensors.dfirst_states, hidden, /*adds=*/false);
    if (!has_table() && t % steps_at_once_ == 0) {
      const auto together = as_int(std::min(steps_at_once_, shape_.steps - t));
      float* const dx = tensors.dx + t * batch * inputs;
      input_weight_.multiply(dgates, row, together * batch, dx, inputs, /*adds=*/false);
    }
  }
  std::copy_n(tensors.dinput_bias, shape_.gates(), tensors.dstate_bias);
}

// oneDNN takes the states of all later steps from the result, and then those of the first step.
void LstmLayerGradient::multiply_by_states(const Tensors& tensors) {
  if (shape_.steps > 1) {
    by_states_.run(tensors.y,
                   dgates_.data_ptr<float>() + shape_.batch * shape_.row_of_gates(),
                   tensors.dstate_weight);
  }
  by_first_states_.run(tensors.first_states, dgates_.data_ptr<float>(), tensors.dstate_weight);
}

int64_t LstmLayerGradient::bytes() const {
  return input_weight_.bytes() + state_weight_.bytes() + bytes_of(zeros_) +
         static_cast<int64_t>(dgates_.nbytes() + sums_.nbytes() + looked_up_.nbytes());
}

}  // namespace rondo
