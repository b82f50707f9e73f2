// Layers of LSTM by rondo's own kernels, which run in place of oneDNN's where LibTorch 2 calls
// that.

#include <ATen/core/dispatch/Dispatcher.h>
#include <doctest/doctest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/rnn.h>
#include <torch/types.h>

#include <exception>
#include <vector>

#include "support/with_threads.h"
#include "tracing/kernel_checks.h"
#include "tracing/kernels/recurrent/lstm_layer.h"
#include "tracing/lstm_layer_given.h"
#include "tracing/operators/lstm_operators.h"
#include "tracing/passes/passes.h"

TEST_SUITE_BEGIN("tracing/kernels/lstm_layer");

using namespace rondo;
using namespace rondo::test;

namespace {

constexpr const char* kOfLibTorch = "aten::mkldnn_rnn_layer";
constexpr const char* kGradientOfLibTorch = "aten::mkldnn_rnn_layer_backward";

// A vector and less, several panels, one of everything, long sums.
const std::vector<LstmShape> kShapes = {{5, 3, 7, 8},
                                        {1, 1, 1, 1},
                                        {9, 33, 100, 17},
                                        {2, 70, 3, 40},
                                        {20, 16, 128, 64},
                                        {1, 4, 20, 16},
                                        {60, 8, 12, 130},
                                        {3, 2, 400, 520}};

bool has_operator(const char* name) {
  return c10::Dispatcher::singleton().findSchema({name, ""}).has_value();
}

/// The result, the last states and cells, and the gradients of all that is given.
template <class Forward, class Backward>
Tensors both_of(const Forward& forward, const Backward& backward) {
  Tensors all = forward();
  const at::Tensor kept = all.back();
  all.pop_back();
  const Tensors gradients = backward(all, kept);
  all.insert(all.end(), gradients.begin(), gradients.end());
  return all;
}

Tensors by_own_operators(const Given& g) {
  register_with_dispatcher();
  const Tensors& w = g.weights;
  return both_of(
      [&] {
        return call(kOwn, {g.x, w[0], w[1], w[2], w[3], g.states, g.cells});
      },
      [&](const Tensors& made, const at::Tensor& kept) {
        return call(kOwnGradient,
                    {g.come_back[0],
                     g.come_back[1],
                     g.come_back[2],
                     g.x,
                     w[0],
                     w[1],
                     g.states,
                     g.cells,
                     made[0],
                     kept});
      });
}

template <class Tuple>
Tensors listed(Tuple tensors) {
  return std::apply([](auto&&... each) { return Tensors{each...}; }, std::move(tensors));
}

Tensors by_operators_of_libtorch(const Given& g) {
  const Tensors& w = g.weights;
  return both_of(
      [&] {
        return listed(LstmByOperators::forward(g.x, w[0], w[1], w[2], w[3], g.states, g.cells));
      },
      [&](const Tensors& made, const at::Tensor& kept) {
        return listed(LstmByOperators::backward(g.come_back[0],
                                                g.come_back[1],
                                                g.come_back[2],
                                                g.x,
                                                w[0],
                                                w[1],
                                                g.states,
                                                g.cells,
                                                made[0],
                                                kept));
      });
}

/// How LibTorch calls its layer.
struct Options {
  bool is_reversed = false;
  bool has_gradient = true;
  bool comes_back_transposed = false;  ///< what a module whose batch comes first hands back
};

/// By the layer that LibTorch 2 has.
Tensors by_layer_of_libtorch(const Given& g, const Options& options = {}) {
  constexpr int64_t kLstm = 2;
  constexpr int64_t kLayers = 1;
  const std::vector<int64_t> no_sizes;
  const int64_t hidden = g.states.size(1);
  const Tensors& w = g.weights;
  const c10::AutoGradMode keeps_for_gradient(true);
  const auto forward = [&] {
    return call(kOfLibTorch,
                {g.x,
                 w[0],
                 w[1],
                 w[2],
                 w[3],
                 g.states,
                 g.cells,
                 options.is_reversed,
                 no_sizes,
                 kLstm,
                 hidden,
                 kLayers,
                 true,
                 false,
                 false,
                 true});
  };
  const auto backward = [&](const Tensors& made, const at::Tensor& workspace) {
    return !options.has_gradient ? Tensors{} : call(kGradientOfLibTorch, {g.x,
                                                                          w[0],
                                                                          w[1],
                                                                          w[2],
                                                                          w[3],
                                                                          g.states,
                                                                          g.cells,
                                                                          made[0],
                                                                          made[1],
                                                                          made[2],
                                                                          g.come_back[0],
                                                                          g.come_back[1],
                                                                          g.come_back[2],
                                                                          options.is_reversed,
                                                                          kLstm,
                                                                          hidden,
                                                                          kLayers,
                                                                          true,
                                                                          true,
                                                                          false,
                                                                          no_sizes,
                                                                          false,
                                                                          workspace});
  };
  return both_of(forward, backward);
}

/// By autograd, through the module.
Tensors by_module(const Given& g) {
  torch::nn::LSTM lstm(torch::nn::LSTMOptions(g.shape().inputs, g.shape().hidden));
  const Tensors weights = lstm->parameters();
  for (size_t i = 0; i < weights.size(); ++i) {
    const at::NoGradGuard no_grad;
    at::Tensor(weights[i]).copy_(g.weights[i]);
  }
  const auto leaf = [](const at::Tensor& tensor) { return tensor.detach().requires_grad_(); };
  const Tensors first = {leaf(g.x), leaf(g.states), leaf(g.cells)};
  const auto [y, last] =
      lstm->forward(first[0], std::tuple(first[1].unsqueeze(0), first[2].unsqueeze(0)));
  const Tensors results = {y, std::get<0>(last).squeeze(0), std::get<1>(last).squeeze(0)};
  torch::autograd::backward(results, g.come_back);
  Tensors all;
  for (const at::Tensor& result : results) {
    all.push_back(result.detach());
  }
  all.push_back(first[0].grad());
  for (const at::Tensor& weight : weights) {
    all.push_back(weight.grad());
  }
  all.insert(all.end(), {first[1].grad(), first[2].grad()});
  return all;
}

void check_close(const Tensors& got, const Tensors& expected) {
  constexpr double kTolerance = 2e-5;  // of the largest
  REQUIRE(got.size() == expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    REQUIRE(got[i].sizes() == expected[i].sizes());
    const double largest = expected[i].abs().max().item<double>();
    CHECK(got[i].sub(expected[i]).abs().max().item<double>() <= kTolerance * largest);
  }
}

void check_same_bits(const Tensors& got, const Tensors& expected) {
  REQUIRE(got.size() == expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    CHECK(equal_bytes(got[i], expected[i]));
  }
}

template <class Check>
void for_each_shape(const Check& check) {
  for (const LstmShape& s : kShapes) {
    CAPTURE(s.steps);
    CAPTURE(s.batch);
    CAPTURE(s.inputs);
    CAPTURE(s.hidden);
    check(Given(s, /*seed=*/3));
  }
}

bool can_compare_with_libtorch() {
  const bool can = has_operator(kOfLibTorch) && can_run_lstm(kShapes.front());
  if (!can) {
    MESSAGE("skipped: this LibTorch has no layer of oneDNN's, or the machine cannot run rondo's");
  }
  return can;
}

Recorded recorded_layer(const LstmShape& shape, const Options& options = {}) {
  return Recorded(
      [options](const Batch& batch) {
        Given given(batch);
        if (options.comes_back_transposed) {
          given.come_back[0] = given.come_back[0]
                                   .reshape({-1, given.shape().steps, given.shape().hidden})
                                   .transpose(0, 1);
        }
        return by_layer_of_libtorch(given, options);
      },
      batch_of(Given(shape, 3)));
}

}  // namespace

TEST_CASE("a layer by LibTorch's operators computes what its module does") {
  for_each_shape(
      [](const Given& given) { check_close(by_operators_of_libtorch(given), by_module(given)); });
}

TEST_CASE("rondo's layer computes what LibTorch's operators do") {
  for_each_shape([](const Given& given) {
    check_close(by_own_operators(given), by_operators_of_libtorch(given));
  });
}

TEST_CASE("tensors that do not fit together are refused, as a forged step file may have them") {
  register_with_dispatcher();
  const Given g({5, 3, 7, 8}, 3);
  const Tensors& w = g.weights;
  const at::Tensor small = at::ones({2, 2});
  CHECK_THROWS_AS(call(kOwn, {g.x, small, w[1], w[2], w[3], g.states, g.cells}), std::exception);
  CHECK_THROWS_AS(call(kOwn, {g.x, w[0], small, w[2], w[3], g.states, g.cells}), std::exception);
  for (const int64_t rows : {1, 3}) {  // which cannot be cut into gates
    const at::Tensor bias = at::ones({rows});
    CHECK_THROWS_AS(
        call(kOwn, {g.x, at::ones({rows, 7}), at::ones({rows, 8}), bias, bias, g.states, g.cells}),
        std::exception);
  }
  CHECK_THROWS_AS(call(kOwn, {small, w[0], w[1], w[2], w[3], g.states, g.cells}), std::exception);
  const at::Tensor y = at::ones({5, 3, 8});
  CHECK_THROWS_AS(call(kOwnGradient, {y, {}, {}, g.x, w[0], w[1], g.states, g.cells, y, small}),
                  std::exception);
}

TEST_CASE("gradients that do not come are zero") {
  const Given given({5, 3, 7, 8}, 3);
  register_with_dispatcher();
  const auto gradients = [&](const c10::IValue& dstates, const c10::IValue& dcells) {
    const Tensors& w = given.weights;
    const Tensors made = call(kOwn, {given.x, w[0], w[1], w[2], w[3], given.states, given.cells});
    return call(kOwnGradient,
                {given.come_back[0],
                 dstates,
                 dcells,
                 given.x,
                 w[0],
                 w[1],
                 given.states,
                 given.cells,
                 made[0],
                 made[3]});
  };
  const at::Tensor zeros = at::zeros({3, 8});
  check_same_bits(gradients({}, {}), gradients(zeros, zeros));
}

TEST_CASE("rondo's layer has the bits of oneDNN's, on any number of threads") {
  if (!can_compare_with_libtorch()) {
    return;
  }
  for (const int threads : {1, 2}) {
    CAPTURE(threads);
    const WithThreads scope(threads);
    for_each_shape([](const Given& given) {
      check_same_bits(by_own_operators(given), by_layer_of_libtorch(given));
    });
  }
}

TEST_CASE("inputs that repeat give the bits that they give among others") {
  const LstmShape few = {20, 16, 24, 32};
  if (!can_run_lstm(few)) {
    MESSAGE("skipped: the machine cannot run rondo's layer");
    return;
  }
  register_with_dispatcher();
  LstmShape many = few;
  many.batch = 8 * few.batch;
  const Given among_others(many, /*seed=*/3);
  const at::Tensor tokens = at::arange(few.rows()).mul(7).remainder(11);
  const at::Tensor inputs = random({11, few.inputs}, 20).index_select(0, tokens);
  const auto first = [&](const at::Tensor& tensor, int64_t dimension) {
    return tensor.narrow(dimension, 0, few.batch);
  };
  first(among_others.x, 1).copy_(inputs.view({few.steps, few.batch, few.inputs}));
  const auto forward = [&](const at::Tensor& x, const at::Tensor& states, const at::Tensor& cells) {
    const Tensors& w = among_others.weights;
    return call(kOwn, {x.contiguous(), w[0], w[1], w[2], w[3], states.clone(), cells.clone()});
  };
  const Tensors expected = forward(among_others.x, among_others.states, among_others.cells);
  const Tensors got = forward(
      first(among_others.x, 1), first(among_others.states, 0), first(among_others.cells, 0));
  check_same_bits(
      got,
      {first(expected[0], 1), first(expected[1], 0), first(expected[2], 0), first(expected[3], 2)});
}

TEST_CASE("a layer on an embedding of few tokens has the bits of oneDNN's") {
  if (!can_compare_with_libtorch()) {
    return;
  }
  for (const LstmShape& shape : {LstmShape{20, 16, 128, 64}, LstmShape{9, 33, 400, 17}}) {
    CAPTURE(shape.inputs);
    Given given(shape, /*seed=*/3);
    const at::Tensor tokens = at::arange(shape.rows()).mul(7).remainder(11);
    given.x = random({11, shape.inputs}, 20).index_select(0, tokens).view(given.x.sizes());
    check_same_bits(by_own_operators(given), by_layer_of_libtorch(given));
  }
}

TEST_CASE("gradients too small for a float have the signs of oneDNN's") {
  if (!can_compare_with_libtorch()) {
    return;
  }
  for (const double scale : {1e-42, 1e-44}) {
    CAPTURE(scale);
    for_each_shape([&](Given given) {
      if (given.shape().batch == 1) {
        return;  // a pass leaves single sequences to LibTorch
      }
      for (at::Tensor& gradient : given.come_back) {
        gradient.mul_(scale);
      }
      check_same_bits(by_own_operators(given), by_layer_of_libtorch(given));
    });
  }
}

TEST_CASE("a plan runs the layer by kernels of rondo's own, with the bytes of the step") {
  if (!can_compare_with_libtorch()) {
    return;
  }
  for (const LstmShape& shape : {LstmShape{20, 16, 24, 32}, LstmShape{3, 2, 5, 7}}) {
    for (const bool comes_back_transposed : {false, true}) {
      CAPTURE(shape.batch);
      CAPTURE(comes_back_transposed);
      Options options;
      options.comes_back_transposed = comes_back_transposed;
      const Recorded recorded = recorded_layer(shape, options);
      const StepProgram program = clean_up(recorded.program).program;
      CHECK(count(program, kOwn) == 1);
      CHECK(count(program, kOwnGradient) == 1);
      const auto batches = [&](int step) { return batch_of(Given(shape, step)); };
      CHECK(check_passed(recorded, program, batches) == 2);
      const PlannedExecutor plan(program, TextLog(LogLevel::Error));
      CHECK(plan.memory().arena > plan.plan().memory->arena_bytes());  // packed weights
    }
  }
}

TEST_CASE("layers of other kinds stay LibTorch's") {
  if (!can_compare_with_libtorch()) {
    return;
  }
  const LstmShape shape = {5, 3, 7, 8};
  const auto check_left_alone = [](const StepProgram& program) {
    CHECK(count(program, kOfLibTorch) == 1);
    CHECK(count(program, kOwn) == 0);
  };
  SUBCASE("from the last step to the first one") {
    Options options;
    options.is_reversed = true;
    check_left_alone(clean_up(recorded_layer(shape, options).program).program);
  }
  SUBCASE("without a gradient") {
    Options options;
    options.has_gradient = false;
    check_left_alone(clean_up(recorded_layer(shape, options).program).program);
  }
  SUBCASE("of a single sequence, where oneDNN multiplies by a vector and rounds in another order") {
    check_left_alone(clean_up(recorded_layer({20, 1, 64, 32}).program).program);
  }
  SUBCASE("whose workspace somebody else sees") {
    StepProgram program = recorded_layer(shape).program;
    for (const Instruction& instruction : program.instructions) {
      if (operator_name(instruction.op) == kOfLibTorch) {
        program.outputs.emplace_back("workspace", instruction.results[3].slots[0]);
      }
    }
    check_left_alone(clean_up(program).program);
  }
  SUBCASE("with the pass switched off") {
    check_left_alone(clean_up(recorded_layer(shape).program, {"lstm_layers"}).program);
  }
}

TEST_SUITE_END();
