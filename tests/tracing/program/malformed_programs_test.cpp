// Programs as only a damaged or forged step file has them. What they compute is an error or
// anything at all; what they may not do is read or write where they should not, which
// AddressSanitizer sees.

#include <doctest/doctest.h>
#include <torch/types.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tracing/kernel_checks.h"
#include "tracing/onednn/recorded_convolution.h"
#include "tracing/passes/passes.h"

TEST_SUITE_BEGIN("tracing/program/malformed_programs");

using namespace rondo;
using namespace rondo::test;

namespace {

const std::vector<int64_t> kZeros = {0, 0};
const std::vector<int64_t> kOnes = {1, 1};
const std::vector<int64_t> kTwos = {2, 2};

Instruction& find(StepProgram& program, const std::string& op) {
  for (Instruction& instruction : program.instructions) {
    if (operator_name(instruction.op) == op) {
      return instruction;
    }
  }
  throw std::logic_error("the step has no " + op);
}

Slot& slot_of_result(StepProgram& program, const std::string& op, size_t i) {
  return program.slots[static_cast<size_t>(find(program, op).results[i].slots[0])];
}

void set_sizes(Slot& slot, std::vector<int64_t> sizes) {
  slot.sizes = std::move(sizes);
  slot.strides.assign(slot.sizes.size(), 1);
}

/// A constant, of ones.
SlotId add_tensor(StepProgram& program, const std::vector<int64_t>& sizes) {
  Slot slot;
  slot.kind = SlotKind::Constant;
  slot.storage = program.storages++;
  slot.value = at::ones(sizes);
  slot.sizes = sizes;
  slot.strides = slot.value.strides().vec();
  program.slots.push_back(slot);
  return static_cast<SlotId>(program.slots.size() - 1);
}

/// \return whether it ended with an error
bool is_refused(const StepProgram& program, const Batch& batch) {
  try {
    PlannedExecutor plan(program, TextLog(LogLevel::Error));
    plan.run(batch, kAlwaysDue);
    return false;
  } catch (const std::exception&) {
    return true;
  }
}

Batch images() {
  return {{"x", random({17, 16, 8, 8}, 1)},
          {"weight", random({16, 16, 3, 3}, 2)},
          {"w", random({16}, 3)},
          {"b", random({16}, 4)}};
}

at::Tensor convolve(const at::Tensor& x, const Batch& batch) {
  return at::convolution(
      x, batch["weight"], batch["b"], kOnes, kOnes, kOnes, false, kZeros, /*groups=*/1);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> gradients_of_convolution(const at::Tensor& dy,
                                                                        const at::Tensor& x,
                                                                        const Batch& batch) {
  const std::vector<int64_t> bias_sizes = {16};
  return at::convolution_backward(dy,
                                  x,
                                  batch["weight"],
                                  bias_sizes,
                                  kOnes,
                                  kOnes,
                                  kOnes,
                                  false,
                                  kZeros,
                                  1,
                                  {true, true, true});
}

/// A convolution, a pooled batch norm, and their gradients.
struct PooledStep {
  CapturedState state = {{"mean", at::zeros({16})}, {"var", at::ones({16})}};
  StepProgram program;

  PooledStep() {
    const at::Tensor mean = state[0].second;
    const at::Tensor var = state[1].second;
    const Recorded recorded(
        [=](const Batch& batch) {
          const at::Tensor x = convolve(batch["x"], batch);
          const auto [normal, m, d] =
              at::native_batch_norm(x, batch["w"], batch["b"], mean, var, true, 0.1, 1e-5);
          const at::Tensor rectified = at::relu(normal);
          const auto [largest, indices] =
              at::max_pool2d_with_indices(rectified, kTwos, kTwos, kZeros, kOnes, false);
          const at::Tensor y = convolve(largest, batch);
          const auto [dlargest, dw, db] = gradients_of_convolution(y, largest, batch);
          const at::Tensor spread = at::max_pool2d_with_indices_backward(
              dlargest, rectified, kTwos, kTwos, kZeros, kOnes, false, indices);
          const auto [dx, dgamma, dbeta] =
              at::native_batch_norm_backward(at::threshold_backward(spread, rectified, 0),
                                             x,
                                             batch["w"],
                                             mean,
                                             var,
                                             m,
                                             d,
                                             true,
                                             1e-5,
                                             {true, true, true});
          const auto of_x = gradients_of_convolution(dx, batch["x"], batch);
          return std::vector{y, dw, db, dgamma, dbeta, std::get<1>(of_x)};
        },
        images(),
        state);
    program = put_channels_in_blocks(fuse_batch_norm_relu_pool(recorded.program));
  }
};

std::vector<at::Tensor> call(const char* name, torch::jit::Stack stack) {
  c10::Dispatcher::singleton().findSchemaOrThrow(name, "").callBoxed(&stack);
  std::vector<at::Tensor> results;
  for (const c10::IValue& value : stack) {
    results.push_back(value.toTensor());
  }
  return results;
}

constexpr const char* kLstm = "rondo::lstm_layer";
constexpr const char* kLstmBackward = "rondo::lstm_layer_backward";

Batch sequences() {
  return {{"x", random({5, 3, 7}, 1)},
          {"w0", random({32, 7}, 2)},
          {"w1", random({32, 8}, 3)},
          {"b", random({32}, 4)},
          {"states", random({3, 8}, 5)}};
}

/// A layer of LSTM and its gradient.
StepProgram lstm_step() {
  const Recorded recorded(
      [](const Batch& g) {
        const at::Tensor states = g["states"];
        const auto made = call(kLstm, {g["x"], g["w0"], g["w1"], g["b"], g["b"], states, states});
        return call(
            kLstmBackward,
            {made[0], states, states, g["x"], g["w0"], g["w1"], states, states, made[0], made[3]});
      },
      sequences());
  return recorded.program;
}

constexpr const char* kPool = "rondo::batch_norm_relu_pool";
constexpr const char* kPoolBackward = "rondo::batch_norm_relu_pool_backward";

}  // namespace

TEST_CASE("results of other sizes than the operator's") {
  const Batch batch{{"a", random({64}, 1)}};
  const Recorded recorded(
      [](const Batch& x) {
        const at::Tensor norm = x["a"].norm();
        return std::vector{norm, at::stack(std::vector<at::Tensor>(4000, norm))};
      },
      batch);
  StepProgram program = recorded.program;
  SUBCASE("too few for what is put side by side") {
    set_sizes(slot_of_result(program, "aten::stack", 0), {1});
  }
  SUBCASE("none for a norm") {
    set_sizes(slot_of_result(program, "aten::norm.Scalar", 0), {0});
  }
  is_refused(program, batch);
}

TEST_CASE("softmax and pooling of bfloat16 whose results have other sizes or types") {
  const Batch batch{{"rows", random({4, 32}, 1).to(at::kBFloat16)},
                    {"images", random({2, 3, 8, 8}, 2).to(at::kBFloat16)}};
  const auto try_change =
      [&](const Body& body, const char* op, size_t i, const std::function<void(Slot&)>& change) {
        StepProgram program = Recorded(body, batch).program;
        change(slot_of_result(program, op, i));
        is_refused(program, batch);
      };
  const Body softmax = [](const Batch& x) {
    const at::Tensor shares = x["rows"].softmax(-1);
    return std::vector{shares, at::_softmax_backward_data(x["rows"], x["rows"], -1, at::kBFloat16)};
  };
  for (const char* op : {"aten::_softmax", "aten::_softmax_backward_data"}) {
    for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{}, {4, 0}, {4, 64}, {64, 32}}) {
      try_change(softmax, op, 0, [&](Slot& slot) { set_sizes(slot, sizes); });
    }
  }
  const Body pool = [](const Batch& x) {
    const auto [pooled, places] =
        at::max_pool2d_with_indices(x["images"], kTwos, kTwos, kZeros, kOnes, false);
    return std::vector{pooled, places};
  };
  const char* const op = "aten::max_pool2d_with_indices";
  try_change(pool, op, 1, [](Slot& slot) { slot.dtype = at::kInt; });
  try_change(pool, op, 1, [](Slot& slot) { slot.sizes[0] = 1; });
  try_change(pool, op, 0, [](Slot& slot) { slot.sizes[1] = 1; });
}

TEST_CASE("convolutions with arguments of another kind, and numbers beyond reason") {
  const Recorded recorded(
      [](const Batch& batch) { return std::vector{convolve(batch["x"], batch)}; }, images());
  StepProgram program = recorded.program;
  Instruction& convolution = find(program, "aten::convolution");
  constexpr int64_t kHuge = int64_t{1} << 62;
  const auto check_left_to_libtorch = [&] {  // which may overflow, and take them
    CHECK(!shape_of_convolution(program, convolution));
    is_refused(program, images());
  };
  SUBCASE("a number for a bias") {
    convolution.arguments[2] = Argument::constant_of(int64_t{3});
  }
  SUBCASE("a number for an image") {
    convolution.op = c10::Dispatcher::singleton().findSchemaOrThrow("rondo::convolution", "");
    convolution.arguments[0] = Argument::constant_of(int64_t{3});
    convolution.arguments.push_back(Argument::constant_of(int64_t{0}));
  }
  SUBCASE("padding and dilation that overflow") {
    convolution.arguments[4] = Argument::constant_of(std::vector<int64_t>{kHuge, 1});
    convolution.arguments[5] = Argument::constant_of(std::vector<int64_t>{kHuge, 1});
    check_left_to_libtorch();
    return;
  }
  SUBCASE("groups that overflow") {
    convolution.arguments[8] = Argument::constant_of((int64_t{1} << 60) + 1);
    check_left_to_libtorch();
    return;
  }
  SUBCASE("groups that do not divide the channels") {
    convolution.arguments[8] = Argument::constant_of(int64_t{3});
  }
  CHECK(is_refused(program, images()));
}

TEST_CASE("gradients of a convolution that are numbers") {
  const Recorded recorded(
      [](const Batch& batch) {
        const auto [dx, dw, db] = gradients_of_convolution(batch["x"], batch["x"], batch);
        return std::vector{dx, dw, db};
      },
      images());
  for (const size_t i : {0, 1, 2}) {
    StepProgram program = recorded.program;
    find(program, "aten::convolution_backward").results[i] = Argument::constant_of(int64_t{3});
    is_refused(program, images());
  }
}

TEST_CASE("a batch norm with fewer numbers than channels") {
  PooledStep step;
  if (step.program.instructions.size() < 5 || !uses_all_kernels()) {
    MESSAGE("skipped: another LibTorch");
    return;
  }
  SUBCASE("none, for comparison") {
    CHECK(!is_refused(step.program, images()));
    return;
  }
  SUBCASE("weights") {
    find(step.program, kPool).arguments[1].slots[0] = add_tensor(step.program, {1});
  }
  SUBCASE("statistics") {
    set_sizes(slot_of_result(step.program, kPool, 2), {1});
  }
  SUBCASE("gradients of weights") {
    set_sizes(slot_of_result(step.program, kPoolBackward, 1), {1});
  }
  SUBCASE("no routes") {
    find(step.program, kPoolBackward).arguments[1].slots[0] = kNoTensor;
  }
  is_refused(step.program, images());
}

TEST_CASE("a layer of LSTM whose tensors do not fit together") {
  CHECK(!is_refused(lstm_step(), sequences()));  // for comparison
  const std::vector<std::vector<int64_t>> others = {
      {1}, {0}, {3, 7}, {1, 1, 1}, {5, 3, 9}, {3, 2}, {1 << 9, 8}};
  for (const char* const op : {kLstm, kLstmBackward}) {
    StepProgram whole = lstm_step();
    for (size_t i = 0; i < find(whole, op).arguments.size(); ++i) {
      for (const std::vector<int64_t>& sizes : others) {
        StepProgram program = whole;
        find(program, op).arguments[i].slots[0] = add_tensor(program, sizes);
        is_refused(program, sequences());
      }
    }
  }
}

TEST_CASE("a layer of LSTM whose weights all agree, but cannot be cut into gates") {
  for (const int64_t rows : {1, 3, 64}) {
    CAPTURE(rows);
    StepProgram program = lstm_step();
    Instruction& layer = find(program, kLstm);
    layer.arguments[1].slots[0] = add_tensor(program, {rows, 7});
    layer.arguments[2].slots[0] = add_tensor(program, {rows, 8});
    layer.arguments[3].slots[0] = add_tensor(program, {rows});
    layer.arguments[4].slots[0] = add_tensor(program, {rows});
    CHECK(is_refused(program, sequences()));
  }
}

TEST_SUITE_END();
