#include <doctest/doctest.h>
#include <torch/types.h>

#include <functional>
#include <string>
#include <vector>

#include "core/vector_loop.h"
#include "support/with_threads.h"
#include "tracing/kernel_checks.h"
#include "tracing/onednn/convolution.h"
#include "tracing/passes/passes.h"

TEST_SUITE_BEGIN("tracing/passes/channel_blocks");

using namespace rondo;
using namespace rondo::test;

namespace {

const std::vector<int64_t> kZeros = {0, 0};
const std::vector<int64_t> kOnes = {1, 1};
const std::vector<int64_t> kTwos = {2, 2};

at::Tensor convolve(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return at::convolution(x, weight, bias, kOnes, kOnes, kOnes, false, kZeros, 1);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> gradients_of_convolution(const at::Tensor& dy,
                                                                        const at::Tensor& x,
                                                                        const at::Tensor& weight,
                                                                        bool with_x = true) {
  const std::vector<int64_t> bias_sizes = {weight.size(0)};
  return at::convolution_backward(
      dy, x, weight, bias_sizes, kOnes, kOnes, kOnes, false, kZeros, 1, {with_x, true, true});
}

/// A batch norm, ReLU and a pooling, and what their gradients need.
class Pooling {
 public:
  Pooling(const Batch& batch, const at::Tensor& x) : batch_(batch), x_(x) {
    std::tie(normal_, mean_, deviation_) =
        at::native_batch_norm(x, batch["w"], batch["b"], mean0(), var0(), true, 0.1, 1e-5);
    rectified_ = at::relu(normal_);
    std::tie(largest, indices_) =
        at::max_pool2d_with_indices(rectified_, kTwos, kTwos, kZeros, kOnes, false);
  }

  std::tuple<at::Tensor, at::Tensor, at::Tensor> gradients(const at::Tensor& dy) const {
    const at::Tensor spread = at::max_pool2d_with_indices_backward(
        dy, rectified_, kTwos, kTwos, kZeros, kOnes, false, indices_);
    return at::native_batch_norm_backward(at::threshold_backward(spread, rectified_, 0),
                                          x_,
                                          batch_["w"],
                                          mean0(),
                                          var0(),
                                          mean_,
                                          deviation_,
                                          true,
                                          1e-5,
                                          {true, true, true});
  }

  at::Tensor largest;

 private:
  at::Tensor mean0() const { return batch_["mean"]; }

  at::Tensor var0() const { return batch_["var"]; }

  const Batch& batch_;
  at::Tensor x_;
  at::Tensor normal_;
  at::Tensor mean_;
  at::Tensor deviation_;
  at::Tensor rectified_;
  at::Tensor indices_;
};

struct Sizes {
  int64_t batch = 4;
  int64_t in = 3;
  int64_t channels = 32;
  int64_t height = 8;
  int64_t width = 8;
};

// The running statistics are of the batch: the same before each run.
Batch batch_of(const Sizes& s, int step) {
  Batch batch{{"x", random({s.batch, s.in, s.height, s.width}, step)},
              {"w1", random({s.channels, s.in, 3, 3}, step + 1)},
              {"w2", random({s.channels, s.channels, 3, 3}, step + 2)},
              {"bias", random({s.channels}, step + 3)},
              {"w", random({s.channels}, step + 4)},
              {"b", random({s.channels}, step + 5)},
              {"dy", random({s.batch, s.channels, s.height / 2, s.width / 2}, step + 6)},
              {"image", random({s.batch, s.channels, s.height, s.width}, step + 7)}};
  batch["dy"].masked_fill_(batch["dy"].lt(-1), -0.0);
  batch["b"][1] = -0.0F;
  batch["w"][1] = 0.0F;
  return batch;
}

/// What the step writes, so that it cannot be of the batch.
CapturedState statistics_of(const Sizes& s) {
  return {{"mean", random({s.channels}, 71)}, {"var", random({s.channels}, 72).abs()}};
}

/// Calls `body` with the batch and the statistics.
Body with(const CapturedState& state, const Body& body) {
  return [=](const Batch& batch) {
    Batch all = batch;
    for (const auto& [name, tensor] : state) {
      all.set(name, tensor);
    }
    return body(all);
  };
}

bool can_call_onednn() {
  return channel_block() > 0 && widest_instruction_set() == InstructionSet::Avx2;
}

StepProgram passed(const StepProgram& program) {
  return put_channels_in_blocks(fuse_batch_norm_relu_pool(program));
}

/// \return the step after the pass
StepProgram check_same_bytes(const Body& body,
                             const std::function<Batch(int)>& batch,
                             const CapturedState& state = {},
                             const Comparison& are_equal = equal_bytes) {
  const Recorded recorded(with(state, body), batch(0), state);
  const StepProgram program = passed(recorded.program);
  check_passed(recorded, program, batch, are_equal);
  return program;
}

/// convolution, pooled batch norm, convolution, residual, convolution, and all gradients.
std::vector<at::Tensor> residual_net(const Batch& batch) {
  const at::Tensor y1 = convolve(batch["x"], batch["w1"], batch["bias"]);
  const Pooling pooling(batch, y1);
  const at::Tensor y2 = convolve(pooling.largest, batch["w2"], {});
  const at::Tensor rectified = at::relu(y2);
  const at::Tensor sum = rectified.add(pooling.largest);
  const at::Tensor y3 = convolve(sum, batch["w2"], batch["bias"]);

  const auto [dsum, dw3, db3] = gradients_of_convolution(batch["dy"], sum, batch["w2"]);
  const at::Tensor dy2 = at::threshold_backward(dsum, rectified, 0);
  const auto [dlargest, dw2, db2] = gradients_of_convolution(dy2, pooling.largest, batch["w2"]);
  const auto [dy1, dgamma, dbeta] = pooling.gradients(dlargest.add(dsum));
  const auto gradients = gradients_of_convolution(dy1, batch["x"], batch["w1"], /*with_x=*/false);
  return {y3, dw3, db3, dw2, db2, dgamma, dbeta, std::get<1>(gradients), std::get<2>(gradients)};
}

/// A batch norm, and what its gradient needs.
struct Norm {
  const Batch& batch;
  at::Tensor x;
  at::Tensor y;
  at::Tensor mean;
  at::Tensor deviation;

  Norm(const Batch& of, const at::Tensor& input) : batch(of), x(input) {
    std::tie(y, mean, deviation) = at::native_batch_norm(
        x, batch["w"], batch["b"], batch["mean"], batch["var"], true, 0.1, 1e-5);
  }

  std::tuple<at::Tensor, at::Tensor, at::Tensor> gradients(const at::Tensor& dy) const {
    return at::native_batch_norm_backward(dy,
                                          x,
                                          batch["w"],
                                          batch["mean"],
                                          batch["var"],
                                          mean,
                                          deviation,
                                          true,
                                          1e-5,
                                          {true, true, true});
  }
};

/// A block of a residual network: two convolutions with batch norms, and a way around them.
std::vector<at::Tensor> residual_block(const Batch& batch) {
  const at::Tensor entry = at::relu(convolve(batch["x"], batch["w1"], {}));
  const Norm first(batch, convolve(entry, batch["w2"], {}));
  at::Tensor rectified = first.y;
  rectified.relu_();
  const Norm second(batch, convolve(rectified, batch["w2"], batch["bias"]));
  at::Tensor sum = second.y;
  sum.add_(entry);
  const at::Tensor exit = at::relu(sum);
  const at::Tensor y = convolve(exit, batch["w2"], {});

  const auto [dexit, dw, db] = gradients_of_convolution(batch["image"], exit, batch["w2"]);
  const at::Tensor dsum = at::threshold_backward(dexit, exit, 0);
  const auto [dy2, dgamma2, dbeta2] = second.gradients(dsum);
  const auto [drectified, dw2, db2] = gradients_of_convolution(dy2, rectified, batch["w2"]);
  const auto [dy1, dgamma1, dbeta1] =
      first.gradients(at::threshold_backward(drectified, rectified, 0));
  const auto [dentry, dw1, db1] = gradients_of_convolution(dy1, entry, batch["w2"]);
  const at::Tensor dy0 = at::threshold_backward(dsum.add(dentry), entry, 0);
  const auto of_entry = gradients_of_convolution(dy0, batch["x"], batch["w1"]);
  return {y,
          dw,
          db,
          dw2,
          db2,
          dw1,
          db1,
          std::get<0>(of_entry),
          dgamma1,
          dbeta1,
          dgamma2,
          dbeta2,
          std::get<1>(of_entry)};
}

/// convolution, pooled batch norm, and a product, with all gradients.
std::vector<at::Tensor> classifier(const Batch& batch) {
  const at::Tensor y = convolve(batch["x"], batch["w1"], batch["bias"]);
  const Pooling pooling(batch, y);
  const at::Tensor rows = pooling.largest.flatten(1);
  const at::Tensor logits = rows.mm(rows.t());
  const at::Tensor drows = logits.mm(rows);
  const auto [dy, dgamma, dbeta] = pooling.gradients(drows.view(pooling.largest.sizes()));
  const auto [dx, dw, db] = gradients_of_convolution(dy, batch["x"], batch["w1"]);
  return {logits, dgamma, dbeta, dx, dw, db};
}

}  // namespace

TEST_CASE("a net lies in blocks from its first convolution to its last") {
  for (const Sizes& sizes : {Sizes{},
                             Sizes{4, 16, 16, 6, 10},
                             Sizes{2, 1, 48, 7, 9},
                             Sizes{3, 4, 16, 4, 2},
                             Sizes{17, 2, 32, 14, 14}}) {
    CAPTURE(sizes.channels);
    CAPTURE(sizes.height);
    const StepProgram program = check_same_bytes(
        &residual_net, [&](int step) { return batch_of(sizes, step); }, statistics_of(sizes));
    if (can_call_onednn()) {
      CHECK(count(program, "rondo::convolution") == 3);
      CHECK(count(program, "rondo::convolution_backward") == 3);
      CHECK(count(program, "rondo::batch_norm_relu_pool") == 1);
      CHECK(count(program, "aten::clone") == 0);
    }
  }
}

TEST_CASE("a residual block lies in blocks, with batch norms that are not pooled") {
  for (const Sizes& sizes :
       {Sizes{}, Sizes{2, 16, 16, 5, 7}, Sizes{3, 1, 48, 4, 2}, Sizes{17, 3, 32, 8, 12}}) {
    CAPTURE(sizes.channels);
    CAPTURE(sizes.height);
    const StepProgram program = check_same_bytes(
        &residual_block, [&](int step) { return batch_of(sizes, step); }, statistics_of(sizes));
    if (can_call_onednn()) {
      CHECK(count(program, "rondo::convolution") == 4);
      CHECK(count(program, "rondo::convolution_backward") == 4);
      CHECK(count(program, "rondo::batch_norm") == 2);
      CHECK(count(program, "rondo::batch_norm_backward") == 2);
      CHECK(count(program, "aten::clone") == 0);
    }
  }
}

TEST_CASE("planes smaller than a vector keep LibTorch's gradient of a batch norm") {
  const Sizes small = {4, 3, 16, 2, 3};
  const StepProgram program = check_same_bytes(
      &residual_block, [&](int step) { return batch_of(small, step); }, statistics_of(small));
  CHECK(count(program, "rondo::batch_norm_backward") == 0);
}

TEST_CASE("a gradient from outside of the step is copied, and left as it is") {
  CapturedState state = statistics_of({});
  const at::Tensor outside = at::ones({4, 32, 4, 4});  // ones lie in any order
  state.emplace_back("gradient", outside);
  check_same_bytes(
      [](const Batch& batch) {
        const Pooling pooling(batch, convolve(batch["x"], batch["w1"], {}));
        const auto [dy, dgamma, dbeta] = pooling.gradients(batch["gradient"]);
        const auto [dx, dw, db] = gradients_of_convolution(dy, batch["x"], batch["w1"]);
        return std::vector{pooling.largest, dgamma, dbeta, dx, dw};
      },
      [&](int step) {
        if (step == 3) {  // kernels have been tried
          at::Tensor(outside).copy_(random({4, 32, 4, 4}, 9));
        }
        return batch_of({}, step);
      },
      state);
}

TEST_CASE("a copy that was found needless does not keep an image out of blocks") {
  const Recorded recorded(
      [](const Batch& batch) {
        const at::Tensor y = convolve(batch["x"], batch["w1"], {}).clone();
        return std::vector{convolve(y, batch["w2"], {})};
      },
      batch_of({}, 0));
  const StepProgram program = clean_up(recorded.program).program;
  CHECK((count(program, "rondo::convolution") == 2 || !can_call_onednn()));
}

TEST_CASE("what leaves for other operators is copied as windows") {
  for (const Sizes& sizes : {Sizes{}, Sizes{5, 1, 16, 9, 7}, Sizes{2, 16, 48, 4, 4}}) {
    CAPTURE(sizes.channels);
    const StepProgram program = check_same_bytes(
        &classifier, [&](int step) { return batch_of(sizes, step); }, statistics_of(sizes));
    if (can_call_onednn()) {
      CHECK(count(program, "rondo::convolution") == 1);
      CHECK(count(program, "rondo::convolution_backward") == 1);
      CHECK(count(program, "aten::clone") == 2);
    }
  }
}

// As squeeze and excitation has it; its order of elements is open.
TEST_CASE("an image of one pixel keeps its strides") {
  const Body body = [](const Batch& batch) {
    const auto convolve_pixel = [](const at::Tensor& x, const at::Tensor& w, const at::Tensor& b) {
      return at::convolution(x, w, b, kOnes, kZeros, kOnes, false, kZeros, 1);
    };
    const at::Tensor pooled = batch["image"].mean({2, 3}, /*keepdim=*/true);
    const at::Tensor squeezed = at::relu(convolve_pixel(pooled, batch["squeeze"], batch["b1"]));
    return std::vector{at::hardsigmoid(convolve_pixel(squeezed, batch["excite"], batch["b2"]))};
  };
  const StepProgram program = check_same_bytes(body, [](int step) {
    return Batch{{"image", random({16, 64, 8, 8}, step)},
                 {"squeeze", random({16, 64, 1, 1}, step + 1)},
                 {"b1", random({16}, step + 2)},
                 {"excite", random({64, 16, 1, 1}, step + 3)},
                 {"b2", random({64}, step + 4)}};
  });
  if (can_call_onednn()) {
    CHECK(count(program, "rondo::convolution") == 2);
  }
}

TEST_CASE("a plan runs all of it by kernels of its own") {
  if (!can_call_onednn() || !uses_all_kernels()) {
    MESSAGE("skipped: oneDNN cannot be called, or it is another LibTorch");
    return;
  }
  Body body;
  SUBCASE("pooled") {
    body = &residual_net;
  }
  SUBCASE("not pooled") {
    body = [](const Batch& batch) { return residual_block(batch); };
  }
  const CapturedState state = statistics_of({});
  const Recorded recorded(with(state, body), batch_of({}, 0), state);
  const PlannedExecutor plan(passed(recorded.program), TextLog(LogLevel::Error));
  for (const PlannedInstruction& planned : plan.plan().instructions) {
    CAPTURE(to_text(plan.plan().program.instructions[planned.index]));
    CHECK(planned.lowering == Lowering::Own);
  }
  CHECK(plan.memory().arena > plan.plan().memory->arena_bytes());  // what convolutions keep
}

TEST_CASE("elements that are not finite spoil their channel as they do otherwise") {
  check_same_bytes(
      &residual_net,
      [](int step) {
        Batch batch = batch_of({}, step);
        const float infinite = std::numeric_limits<float>::infinity();
        const float odd[] = {infinite, -infinite, std::numeric_limits<float>::quiet_NaN()};
        batch["bias"][step] = odd[step % 3];
        batch["x"][0][0][0][0] = 3e38F;  // whose square is not finite
        batch["b"][5] = infinite;
        return batch;
      },
      statistics_of({}),
      equal_but_for_nans);
}

TEST_CASE("what somebody else sees stays as it was") {
  const auto check_left_alone = [](const Body& body, const Sizes& sizes) {
    const CapturedState state = statistics_of(sizes);
    const StepProgram program = check_same_bytes(
        body, [&](int step) { return batch_of(sizes, step); }, state);
    CHECK(count(program, "rondo::convolution") == 0);
    CHECK(count(program, "rondo::convolution_backward") == 0);
  };
  SUBCASE("an output") {
    check_left_alone(
        [](const Batch& batch) {
          return std::vector{convolve(batch["x"], batch["w1"], batch["bias"])};
        },
        {});
  }
  SUBCASE("an operator that adds up rows") {
    check_left_alone(
        [](const Batch& batch) {
          const at::Tensor y = at::relu(convolve(batch["x"], batch["w1"], {}));
          return std::vector{y.sum({3}), convolve(y, batch["w2"], {})};
        },
        {});
  }
  SUBCASE("one that writes it") {
    check_left_alone(
        [](const Batch& batch) {
          at::Tensor y = convolve(batch["x"], batch["w1"], {});
          y.mul_(2);
          return std::vector{convolve(y, batch["w2"], {})};
        },
        {});
  }
  SUBCASE("a view of it") {
    check_left_alone(
        [](const Batch& batch) {
          const at::Tensor y = convolve(batch["x"], batch["w1"], {});
          return std::vector{convolve(y, batch["w2"], {}), y.select(1, 0).sum()};
        },
        {});
  }
  SUBCASE("a sum with one number a channel") {
    check_left_alone(
        [](const Batch& batch) {
          const at::Tensor y = convolve(batch["x"], batch["w1"], {});
          return std::vector{convolve(y.add(batch["b"].view({-1, 1, 1})), batch["w2"], {})};
        },
        {});
  }
  SUBCASE("channels that fill no block") {
    check_left_alone(&residual_net, {4, 3, 12, 8, 8});
  }
  SUBCASE("an image small enough for LibTorch to do without oneDNN") {
    check_left_alone(&residual_net, {1, 3, 32, 8, 8});
  }
}

TEST_CASE("a plan follows the number of threads") {
  const WithThreads one(1);
  const CapturedState state = statistics_of({});
  const Recorded recorded(with(state, &residual_net), batch_of({}, 0), state);
  PlannedExecutor plan(passed(recorded.program), TextLog(LogLevel::Error));
  JitExecutor interpreter(recorded.program);
  for (const int threads : {1, 1, 1, 1, 2, 2, 1}) {
    const WithThreads some(threads);
    const std::vector<at::Tensor> wanted = interpreter.run(batch_of({}, 0), kAlwaysDue);
    const std::vector<at::Tensor>& got = plan.run(batch_of({}, 0), kAlwaysDue);
    for (size_t i = 0; i < wanted.size(); ++i) {
      CHECK(equal_bytes(got[i], wanted[i]));
    }
  }
}

TEST_SUITE_END();
