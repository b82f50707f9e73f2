#include <doctest/doctest.h>
#include <torch/types.h>

#include <array>
#include <vector>

#include "tracing/kernel_checks.h"
#include "tracing/onednn/convolution.h"

TEST_SUITE_BEGIN("tracing/onednn/convolution");

using namespace rondo;
using namespace rondo::test;

namespace {

struct Shape {
  int64_t in, out, groups;
  std::array<int64_t, 2> kernel, stride, padding, dilation;
  bool has_bias;
};

Batch batch_of(const Shape& shape, int step) {
  return {
      {"x", random({17, shape.in, 9, 11}, step)},
      {"w",
       random({shape.out, shape.in / shape.groups, shape.kernel[0], shape.kernel[1]}, step + 1)},
      {"b", random({shape.out}, step + 2)},
      {"dy", random({17, shape.out, 11, 13}, step + 3)}};
}

/// A convolution and its gradients.
std::vector<at::Tensor> run(const Shape& shape, bool with_x, const Batch& batch) {
  const std::vector<int64_t> none = {0, 0};
  const std::vector<int64_t> bias_sizes = {shape.out};
  const at::Tensor y = at::convolution(batch["x"],
                                       batch["w"],
                                       shape.has_bias ? batch["b"] : at::Tensor(),
                                       shape.stride,
                                       shape.padding,
                                       shape.dilation,
                                       false,
                                       none,
                                       shape.groups);
  const auto [dx, dw, db] = at::convolution_backward(
      batch["dy"].narrow(2, 0, y.size(2)).narrow(3, 0, y.size(3)).contiguous(),
      batch["x"],
      batch["w"],
      bias_sizes,
      shape.stride,
      shape.padding,
      shape.dilation,
      false,
      none,
      shape.groups,
      {with_x, true, shape.has_bias});
  std::vector<at::Tensor> results = {y, dw};
  if (with_x) {
    results.push_back(dx);
  }
  if (shape.has_bias) {
    results.push_back(db);
  }
  return results;
}

}  // namespace

TEST_CASE("convolutions of any shape have the bytes of LibTorch's") {
  for (const Shape& shape : {Shape{1, 16, 1, {3, 3}, {1, 1}, {1, 1}, {1, 1}, true},
                             Shape{3, 8, 1, {5, 5}, {2, 2}, {2, 2}, {1, 1}, false},
                             Shape{16, 32, 1, {3, 3}, {2, 1}, {0, 1}, {1, 2}, true},
                             Shape{7, 5, 1, {3, 2}, {1, 1}, {1, 0}, {1, 1}, true},
                             Shape{32, 32, 32, {3, 3}, {1, 1}, {1, 1}, {1, 1}, false},
                             Shape{32, 16, 2, {3, 3}, {1, 1}, {1, 1}, {1, 1}, true},
                             Shape{32, 48, 1, {1, 1}, {1, 1}, {0, 0}, {1, 1}, true}}) {
    for (const bool with_x : {true, false}) {
      CAPTURE(shape.in);
      CAPTURE(shape.out);
      CAPTURE(with_x);
      const auto batch = [=](int step) { return batch_of(shape, step); };
      const Recorded recorded([=](const Batch& x) { return run(shape, with_x, x); }, batch(0));
      const int own = check_passed(recorded, recorded.program, batch);
      CHECK((own >= 2 || channel_block() == 0 || !uses_all_kernels()));
    }
  }
}

TEST_SUITE_END();
