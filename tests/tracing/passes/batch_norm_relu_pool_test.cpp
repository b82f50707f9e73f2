#include <ATen/core/dispatch/Dispatcher.h>
#include <doctest/doctest.h>
#include <torch/types.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "core/vector_loop.h"
#include "tracing/kernel_checks.h"
#include "tracing/passes/passes.h"

TEST_SUITE_BEGIN("tracing/passes/batch_norm_relu_pool");

using namespace rondo;
using namespace rondo::test;

namespace {

/// A batch norm, ReLU and a pooling, with their gradients, as autograd runs them. Tests change
/// parts of it.
struct Layer {
  std::vector<int64_t> kernel = {2, 2};
  std::vector<int64_t> stride;
  bool training = true;
  std::function<at::Tensor(const at::Tensor&)> relu = [](const at::Tensor& x) {
    return at::relu(x);
  };
  /// What the step returns besides the usual.
  std::function<at::Tensor(const at::Tensor& normal, const at::Tensor& rectified)> more;
  at::Tensor running_mean;
  at::Tensor running_var;

  explicit Layer(int64_t channels)
      : running_mean(random({channels}, 71)), running_var(random({channels}, 72).abs()) {}

  CapturedState state() const { return {{"mean", running_mean}, {"var", running_var}}; }

  std::vector<at::Tensor> operator()(const Batch& batch) const {
    const at::Tensor& x = batch["x"];
    const std::vector<int64_t> zeros = {0, 0};
    const std::vector<int64_t> ones = {1, 1};
    const auto [normal, mean, deviation] = at::native_batch_norm(
        x, batch["w"], batch["b"], running_mean, running_var, training, 0.1, 1e-5);
    const at::Tensor rectified = relu(normal);
    const auto [largest, indices] =
        at::max_pool2d_with_indices(rectified, kernel, stride, zeros, ones, false);
    const at::Tensor dy = batch["dy"].narrow(2, 0, largest.size(2)).narrow(3, 0, largest.size(3));
    const at::Tensor spread = at::max_pool2d_with_indices_backward(
        dy.contiguous(), rectified, kernel, stride, zeros, ones, false, indices);
    const auto [dx, dw, db] =
        at::native_batch_norm_backward(at::threshold_backward(spread, rectified, 0),
                                       x,
                                       batch["w"],
                                       running_mean,
                                       running_var,
                                       mean,
                                       deviation,
                                       training,
                                       1e-5,
                                       {true, true, true});
    std::vector<at::Tensor> results = {largest, dx, dw, db};
    if (more) {
      results.push_back(more(normal, rectified));
    }
    return results;
  }
};

/// The second channel is -0, 0 or dead all over; gradients of -0 among others.
Batch batch_of(int64_t channels, int64_t height, int64_t width, int step) {
  Batch batch{{"x", random({6, channels, height, width}, step)},
              {"w", random({channels}, step + 1)},
              {"b", random({channels}, step + 2)},
              {"dy", random({6, channels, height, width}, step + 3)}};
  batch["dy"].masked_fill_(batch["dy"].lt(-1), -0.0);
  if (channels > 1) {
    batch["w"][1] = 0.0;
    batch["b"][1] = step == 1 ? -0.0 : step == 2 ? 0.0 : -1.0;
  }
  return batch;
}

int64_t fusions(const StepProgram& program) {
  const int64_t forward = count(program, "rondo::batch_norm_relu_pool");
  CHECK(forward == count(program, "rondo::batch_norm_relu_pool_backward"));
  return forward;
}

bool has_kernels() {
  return widest_instruction_set() == InstructionSet::Avx2;
}

void check_fused(const Layer& layer, const std::function<Batch(int)>& batch, int64_t expected) {
  const Recorded recorded(layer, batch(0), layer.state());
  const StepProgram passed = fuse_batch_norm_relu_pool(recorded.program);
  CHECK((fusions(passed) == expected || !has_kernels()));
  const int own = check_passed(recorded, passed, batch);
  CHECK((own >= 2 || expected == 0 || !has_kernels() || !uses_all_kernels()));
}

void check_refused(const Layer& layer) {
  check_fused(
      layer, [](int step) { return batch_of(3, 8, 8, step); }, 0);
}

}  // namespace

TEST_CASE("planes of any size and any number of channels give the bytes of the six operators") {
  struct Size {
    int64_t height, width;
  };

  for (const int64_t channels : {1, 3, 8, 19}) {
    for (const Size size : {Size{2, 4},
                            Size{4, 2},
                            Size{10, 2},
                            Size{8, 4},
                            Size{4, 6},
                            Size{7, 7},
                            Size{6, 6},
                            Size{8, 8},
                            Size{5, 16},
                            Size{14, 14},
                            Size{16, 17},
                            Size{18, 20},
                            Size{28, 28}}) {
      CAPTURE(channels);
      CAPTURE(size.height);
      CAPTURE(size.width);
      check_fused(
          Layer(channels),
          [=](int step) { return batch_of(channels, size.height, size.width, step); },
          1);
    }
  }
}

TEST_CASE("elements that are not finite spoil their channel as they do by the six operators") {
  check_fused(
      Layer(9),
      [](int step) {
        Batch batch = batch_of(9, 8, 8, step);
        const float infinite = std::numeric_limits<float>::infinity();
        const float odd[] = {infinite, -infinite, std::numeric_limits<float>::quiet_NaN()};
        batch["x"][step][step][2][step] = odd[step % 3];
        batch["x"][0][7][0][0] = 3e38F;  // whose square is not finite
        batch["b"][5] = infinite;
        return batch;
      },
      1);
}

TEST_CASE("a ReLU in place, and a stride that is written out") {
  Layer layer(3);
  layer.relu = [](const at::Tensor& x) { return x.relu_(); };
  layer.stride = {2, 2};
  check_fused(
      layer, [](int step) { return batch_of(3, 8, 8, step); }, 1);
}

TEST_CASE("what somebody else sees is still computed") {
  Layer seen(3);
  SUBCASE("what ReLU left") {
    seen.more = [](const at::Tensor&, const at::Tensor& rectified) { return rectified.sum(); };
  }
  SUBCASE("what was normalised") {
    seen.more = [](const at::Tensor& normal, const at::Tensor&) { return normal.mean(); };
  }
  SUBCASE("an output") {
    seen.more = [](const at::Tensor&, const at::Tensor& rectified) { return rectified; };
  }
  check_refused(seen);
}

TEST_CASE("what is not a pooling is not taken for one") {
  register_with_dispatcher();
  const auto add_product =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("rondo::mm_to_", "")
          .typed<void(const at::Tensor&, const at::Tensor&, const at::Tensor&, bool)>();
  const Layer layer(3);
  const auto frozen = [&](const Batch& x) {
    return at::relu(std::get<0>(at::native_batch_norm(
        x["x"], x["w"], x["b"], layer.running_mean, layer.running_var, true, 0.1, 1e-5)));
  };
  const Batch batch = batch_of(3, 8, 8, 0);
  Body body;
  SUBCASE("a reader that returns nothing") {
    body = [&](const Batch& x) {
      const at::Tensor rectified = frozen(x);
      const at::Tensor total = rectified.sum();
      const at::Tensor sum = at::zeros({18, 18});
      add_product.call(sum, rectified.view({18, 64}), x["dy"].view({64, 18}), true);
      return std::vector{sum, total};
    };
  }
  SUBCASE("a reader whose first result is not defined") {
    body = [&](const Batch& x) {
      const at::Tensor rectified = frozen(x);
      const at::Tensor weight = at::ones({3, 3, 1, 1});
      const std::vector<int64_t> one = {1, 1};
      const std::vector<int64_t> none = {0, 0};
      const at::Tensor mean = rectified.mean();
      const at::Tensor y = at::convolution(rectified, weight, {}, one, none, one, false, none, 1);
      const auto [dx, dw, db] = at::convolution_backward(x["dy"],
                                                         rectified,
                                                         weight,
                                                         std::vector<int64_t>{3},
                                                         one,
                                                         none,
                                                         one,
                                                         false,
                                                         none,
                                                         1,
                                                         {false, true, true});
      return std::vector{mean, y, dw, db};
    };
  }
  const Recorded recorded(body, batch, layer.state());
  CHECK(fusions(fuse_batch_norm_relu_pool(recorded.program)) == 0);
}

TEST_CASE("planes smaller than a vector keep a kernel for each operator") {
  check_fused(
      Layer(3), [](int step) { return batch_of(3, 2, 2, step); }, 0);
}

TEST_CASE("other layers are left alone") {
  Layer other(3);
  SUBCASE("windows of three") {
    other.kernel = {3, 3};
  }
  SUBCASE("windows that overlap") {
    other.stride = {1, 1};
  }
  SUBCASE("another function than ReLU") {
    other.relu = [](const at::Tensor& x) { return at::leaky_relu(x); };
  }
  SUBCASE("statistics that are fixed") {
    other.training = false;
  }
  check_refused(other);
}

TEST_CASE("sums in lanes, when they need not be exact, stay near") {
  const Layer layer(8);
  Recorded recorded(layer, batch_of(8, 14, 14, 0), layer.state());
  PlannedExecutor plan(fuse_batch_norm_relu_pool(recorded.program),
                       TextLog(LogLevel::Error),
                       {/*exact=*/false, /*chains=*/true});
  for (int step = 0; step < 4; ++step) {
    const std::vector<at::Tensor> expected = layer(batch_of(8, 14, 14, step));
    const std::vector<at::Tensor>& got = plan.run(batch_of(8, 14, 14, step), kAlwaysDue);
    for (size_t i = 0; i < expected.size(); ++i) {
      CHECK(at::allclose(got[i], expected[i], 1e-4, 1e-4));
    }
  }
}

TEST_SUITE_END();
