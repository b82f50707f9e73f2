#include "tracing/operators/lstm_operators.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/embedding_dense_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <initializer_list>
#include <utility>
#include <vector>

#include "tracing/kernels/recurrent/lstm_arguments.h"
#include "tracing/kernels/recurrent/lstm_layer.h"
#include "tracing/operators/define_operator.h"

namespace rondo {

namespace {

/// \throws c10::Error  where they have too few dimensions
LstmShape shape_of(const at::Tensor& x, const at::Tensor& states) {
  return {x.size(0), x.size(1), x.size(2), states.size(-1)};
}

/// A tensor, and how many numbers it has to have.
using Fit = std::pair<const at::Tensor&, int64_t>;

/// Others are left to LibTorch, which says what is wrong with them.
bool all_fit(std::initializer_list<Fit> tensors) {
  return std::all_of(tensors.begin(), tensors.end(), [](const Fit& fit) {
    const auto& [tensor, count] = fit;
    return tensor.is_cpu() && tensor.scalar_type() == at::kFloat && tensor.numel() == count;
  });
}

/// The gates, [batch, 4 · hidden], one by one: input, forget, candidate, output.
/// \throws c10::Error  where they are not that
std::vector<at::Tensor> split_gates(const at::Tensor& gates, int64_t hidden) {
  const std::vector<int64_t> sizes(LstmShape::kGates, hidden);
  return gates.split_with_sizes(sizes, /*dim=*/1);
}

at::Tensor given_or_zeros(const c10::optional<at::Tensor>& gradient, const at::Tensor& like) {
  return gradient && gradient->defined() ? *gradient : at::zeros_like(like);
}

/// Holds the tensor whose numbers are read, in case they were copied.
class Numbers {
 public:
  explicit Numbers(const at::Tensor& tensor) : tensor_(tensor.contiguous()) {}

  operator const float*() const {  // NOLINT(google-explicit-constructor)
    return tensor_.data_ptr<float>();
  }

 private:
  at::Tensor tensor_;
};

LstmResults lstm_layer(const at::Tensor& x,
                       const at::Tensor& input_weight,
                       const at::Tensor& state_weight,
                       const at::Tensor& input_bias,
                       const at::Tensor& state_bias,
                       const at::Tensor& first_states,
                       const at::Tensor& first_cells) {
  const LstmShape shape = shape_of(x, first_states);
  if (!can_run_lstm(shape) || !all_fit({{x, shape.rows() * shape.inputs},
                                        {input_weight, shape.gates() * shape.inputs},
                                        {state_weight, shape.gates() * shape.hidden},
                                        {input_bias, shape.gates()},
                                        {state_bias, shape.gates()},
                                        {first_states, shape.states()},
                                        {first_cells, shape.states()}})) {
    return LstmByOperators::forward(
        x, input_weight, state_weight, input_bias, state_bias, first_states, first_cells);
  }
  LstmResults results = {
      at::empty({shape.steps, shape.batch, shape.hidden}, x.options()),
      at::empty_like(first_states, at::MemoryFormat::Contiguous),
      at::empty_like(first_cells, at::MemoryFormat::Contiguous),
      at::empty({shape.steps, LstmShape::kKept, shape.batch, shape.hidden}, x.options())};
  const auto& [y, last_states, last_cells, kept] = results;
  LstmLayer(shape).run({Numbers(x),
                        Numbers(input_weight),
                        Numbers(state_weight),
                        Numbers(input_bias),
                        Numbers(state_bias),
                        Numbers(first_states),
                        Numbers(first_cells),
                        y.data_ptr<float>(),
                        last_states.data_ptr<float>(),
                        last_cells.data_ptr<float>(),
                        kept.data_ptr<float>()});
  return results;
}

LstmGradients lstm_layer_backward(const c10::optional<at::Tensor>& dy,
                                  const c10::optional<at::Tensor>& dlast_states,
                                  const c10::optional<at::Tensor>& dlast_cells,
                                  const at::Tensor& x,
                                  const at::Tensor& input_weight,
                                  const at::Tensor& state_weight,
                                  const at::Tensor& first_states,
                                  const at::Tensor& first_cells,
                                  const at::Tensor& y,
                                  const at::Tensor& kept) {
  const LstmShape shape = shape_of(x, first_states);
  const at::Tensor of_y = given_or_zeros(dy, y);
  const at::Tensor of_states = given_or_zeros(dlast_states, first_states);
  const at::Tensor of_cells = given_or_zeros(dlast_cells, first_cells);
  if (!can_run_lstm(shape) || !all_fit({{of_y, shape.rows() * shape.hidden},
                                        {of_states, shape.states()},
                                        {of_cells, shape.states()},
                                        {x, shape.rows() * shape.inputs},
                                        {input_weight, shape.gates() * shape.inputs},
                                        {state_weight, shape.gates() * shape.hidden},
                                        {first_states, shape.states()},
                                        {first_cells, shape.states()},
                                        {y, shape.rows() * shape.hidden},
                                        {kept, shape.kept()}})) {
    return LstmByOperators::backward(dy,
                                     dlast_states,
                                     dlast_cells,
                                     x,
                                     input_weight,
                                     state_weight,
                                     first_states,
                                     first_cells,
                                     y,
                                     kept);
  }
  const auto like = [](const at::Tensor& tensor) {
    return at::empty_like(tensor, at::MemoryFormat::Contiguous);
  };
  LstmGradients gradients = {like(x),
                             like(input_weight),
                             like(state_weight),
                             at::empty({shape.gates()}, x.options()),
                             at::empty({shape.gates()}, x.options()),
                             like(first_states),
                             like(first_cells)};
  const auto& [dx, dinput_weight, dstate_weight, dinput_bias, dstate_bias, dstates, dcells] =
      gradients;
  LstmLayerGradient(shape).run({{Numbers(of_y), shape.states(), shape.hidden},
                                Numbers(of_states),
                                Numbers(of_cells),
                                Numbers(x),
                                Numbers(input_weight),
                                Numbers(state_weight),
                                Numbers(first_states),
                                Numbers(first_cells),
                                Numbers(y),
                                Numbers(kept),
                                dx.data_ptr<float>(),
                                dinput_weight.data_ptr<float>(),
                                dstate_weight.data_ptr<float>(),
                                dinput_bias.data_ptr<float>(),
                                dstate_bias.data_ptr<float>(),
                                dstates.data_ptr<float>(),
                                dcells.data_ptr<float>()});
  return gradients;
}

LstmGradients lstm_table_backward(const c10::optional<at::Tensor>& dy,
                                  const c10::optional<at::Tensor>& dlast_states,
                                  const c10::optional<at::Tensor>& dlast_cells,
                                  const at::Tensor& table,
                                  const at::Tensor& input_weight,
                                  const at::Tensor& state_weight,
                                  const at::Tensor& first_states,
                                  const at::Tensor& first_cells,
                                  const at::Tensor& y,
                                  const at::Tensor& kept,
                                  const at::Tensor& numbers,
                                  int64_t padding) {
  LstmGradients gradients = lstm_layer_backward(dy,
                                                dlast_states,
                                                dlast_cells,
                                                at::embedding(table, numbers),
                                                input_weight,
                                                state_weight,
                                                first_states,
                                                first_cells,
                                                y,
                                                kept);
  at::Tensor& of_table = std::get<0>(gradients);
  of_table = at::embedding_dense_backward(
      of_table, numbers, table.size(0), padding, /*scale_grad_by_freq=*/false);
  return gradients;
}

using Shapes = std::vector<TensorShape>;

// Of inputs that repeat. A file may hold tensors of any shape.
int64_t bytes_of_distinct(const TensorShape& x, const TensorShape& states) {
  if (x.sizes.size() != 3 || states.sizes.empty()) {
    return 0;
  }
  const LstmShape shape = {x.sizes[0], x.sizes[1], x.sizes[2], states.sizes.back()};
  return shape.most_distinct() * (shape.inputs + shape.row_of_gates()) * int64_t{sizeof(float)};
}

// Packed weights, and what is computed once for inputs that repeat.
int64_t scratch_of_layer(const Shapes& arguments, const Shapes&) {
  using namespace lstm_forward;
  return arguments[InputWeight].bytes() + arguments[StateWeight].bytes() +
         bytes_of_distinct(arguments[X], arguments[States]);
}

// Packed weights, gradients of the gates, and zeros in place of gradients that nobody gave.
int64_t scratch_of_layer_backward(const Shapes& arguments, const Shapes&) {
  using namespace lstm_backward;
  const int64_t gradients_of_gates = arguments[Kept].bytes() / LstmShape::kKept * LstmShape::kGates;
  const int64_t zeros = arguments[Dy].is_defined ? 0 : arguments[Y].bytes();
  return arguments[InputWeight].bytes() + arguments[StateWeight].bytes() + gradients_of_gates +
         zeros;
}

// The inputs that are looked up in the table, and their gradient, besides.
int64_t scratch_of_table_backward(const Shapes& arguments, const Shapes& results) {
  using namespace lstm_backward;
  const TensorShape& table = arguments[X];
  const int64_t looked_up = table.sizes.size() == 2 ? 2 * arguments[kNumbers].elements() *
                                                          table.sizes[1] * int64_t{sizeof(float)}
                                                    : 0;
  return scratch_of_layer_backward(arguments, results) + looked_up;
}

}  // namespace

LstmResults LstmByOperators::forward(const at::Tensor& x,
                                     const at::Tensor& input_weight,
                                     const at::Tensor& state_weight,
                                     const at::Tensor& input_bias,
                                     const at::Tensor& state_bias,
                                     const at::Tensor& first_states,
                                     const at::Tensor& first_cells) {
  const LstmShape shape = shape_of(x, first_states);
  const at::Tensor gates = at::linear(x, input_weight, input_bias + state_bias);
  at::Tensor y = at::empty({shape.steps, shape.batch, shape.hidden}, x.options());
  at::Tensor kept =
      at::empty({shape.steps, LstmShape::kKept, shape.batch, shape.hidden}, x.options());
  at::Tensor states = first_states.reshape({shape.batch, shape.hidden});
  at::Tensor cells = first_cells.reshape({shape.batch, shape.hidden});
  for (int64_t t = 0; t < shape.steps; ++t) {
    const auto of_step = split_gates(at::addmm(gates[t], states, state_weight.t()), shape.hidden);
    const at::Tensor step = kept[t];
    step[0].copy_(of_step[0].sigmoid());
    step[1].copy_(of_step[1].sigmoid());
    step[2].copy_(of_step[3].sigmoid());
    step[3].copy_(of_step[2].tanh());
    step[4].copy_(cells * step[1] + step[0] * step[3]);
    step[5].copy_(step[4].tanh());
    y[t].copy_(step[5] * step[2]);
    states = y[t];
    cells = step[4];
  }
  return {y,
          states.reshape(first_states.sizes()).clone(),
          cells.reshape(first_cells.sizes()).clone(),
          kept};
}

LstmGradients LstmByOperators::backward(const c10::optional<at::Tensor>& dy,
                                        const c10::optional<at::Tensor>& dlast_states,
                                        const c10::optional<at::Tensor>& dlast_cells,
                                        const at::Tensor& x,
                                        const at::Tensor& input_weight,
                                        const at::Tensor& state_weight,
                                        const at::Tensor& first_states,
                                        const at::Tensor& first_cells,
                                        const at::Tensor& y,
                                        const at::Tensor& kept) {
  const LstmShape shape = shape_of(x, first_states);
  const std::vector<int64_t> matrix = {shape.batch, shape.hidden};
  const at::Tensor of_y = given_or_zeros(dy, y);
  const at::Tensor dgates = at::empty({shape.steps, shape.batch, shape.gates()}, x.options());
  at::Tensor dstates = given_or_zeros(dlast_states, first_states).reshape(matrix);
  at::Tensor dcells = given_or_zeros(dlast_cells, first_cells).reshape(matrix);
  for (int64_t t = shape.steps - 1; t >= 0; --t) {
    const at::Tensor step = kept[t];
    const at::Tensor before = t > 0 ? kept[t - 1][4] : first_cells.reshape(matrix);
    const at::Tensor dh = of_y[t] + dstates;
    const at::Tensor dc = dcells + (1 - step[5].square()) * dh * step[2];
    const auto of_step = split_gates(dgates[t], shape.hidden);
    of_step[0].copy_(step[0] * (1 - step[0]) * dc * step[3]);
    of_step[1].copy_(step[1] * (1 - step[1]) * dc * before);
    of_step[2].copy_((1 - step[3].square()) * dc * step[0]);
    of_step[3].copy_(step[2] * (1 - step[2]) * dh * step[5]);
    dstates = dgates[t].mm(state_weight);
    dcells = dc * step[1];
  }
  const at::Tensor rows = dgates.view({shape.rows(), shape.gates()});
  const at::Tensor states = at::cat(
      {first_states.reshape({1, shape.batch, shape.hidden}), y.narrow(0, 0, shape.steps - 1)});
  const at::Tensor dbias = rows.sum(0);
  return {rows.mm(input_weight).view(x.sizes()),
          rows.t().mm(x.reshape({shape.rows(), shape.inputs})),
          rows.t().mm(states.reshape({shape.rows(), shape.hidden})),
          dbias,
          dbias.clone(),
          dstates.reshape(first_states.sizes()),
          dcells.reshape(first_cells.sizes())};
}

void define_lstm_operators(torch::Library& library) {
  const auto define = [&](const char* schema, ScratchBytes scratch, auto* function) {
    OperatorFacts facts{schema};
    facts.scratch_bytes = std::move(scratch);
    define_operator(library, std::move(facts), function);
  };
  define(
      "rondo::lstm_layer(Tensor x, Tensor input_weight, Tensor state_weight, Tensor input_bias, "
      "Tensor state_bias, Tensor first_states, Tensor first_cells) -> (Tensor y, "
      "Tensor last_states, Tensor last_cells, Tensor kept)",
      &scratch_of_layer,
      &lstm_layer);
  define(
      "rondo::lstm_layer_backward(Tensor? dy, Tensor? dlast_states, Tensor? dlast_cells, "
      "Tensor x, Tensor input_weight, Tensor state_weight, Tensor first_states, "
      "Tensor first_cells, Tensor y, Tensor kept) -> (Tensor, Tensor, Tensor, Tensor, Tensor, "
      "Tensor, Tensor)",
      &scratch_of_layer_backward,
      &lstm_layer_backward);
  define(
      "rondo::lstm_table_backward(Tensor? dy, Tensor? dlast_states, Tensor? dlast_cells, "
      "Tensor table, Tensor input_weight, Tensor state_weight, Tensor first_states, "
      "Tensor first_cells, Tensor y, Tensor kept, Tensor numbers, int padding) -> (Tensor, "
      "Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
      &scratch_of_table_backward,
      &lstm_table_backward);
}

}  // namespace rondo
