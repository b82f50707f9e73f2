#include <doctest/doctest.h>
#include <torch/types.h>

#include "tracing/captured_steps.h"
#include "tracing/instruction_count.h"
#include "tracing/passes/passes.h"

TEST_SUITE_BEGIN("tracing/passes/cross_entropy_backward");

using namespace rondo;
using namespace rondo::test;

TEST_CASE("the gradient of a mean of cross entropies is made from the logarithms at once") {
  int64_t reduction = at::Reduction::Mean;
  int64_t dim = 1;
  bool has_weights = false;
  bool is_seen = false;
  bool changes = false;
  const auto is_fused = [&] {
    CapturedSteps recorded([&](const at::Tensor& x, const at::Tensor& state) {
      const at::Tensor labels = torch::arange(8).remainder(6);
      const auto weights =
          has_weights ? c10::optional<at::Tensor>(torch::arange(1, 7, at::kFloat)) : c10::nullopt;
      const at::Tensor logs = at::log_softmax(x, 1);
      const auto [loss, weight] = at::nll_loss_forward(logs, labels, weights, reduction, 3);
      const at::Tensor gradient = at::full({}, 0.5F);
      const at::Tensor of_logs =
          at::nll_loss_backward(gradient, logs, labels, weights, reduction, 3, weight);
      if (changes) {
        weight.mul_(2);
      }
      const at::Tensor made = at::_log_softmax_backward_data(of_logs, logs, dim, at::kFloat);
      state.add_(loss.sum());
      return is_seen ? made + of_logs : made;
    });
    const StepProgram passed = fuse_cross_entropy_backward(recorded.program);
    recorded.check_same(passed);
    const auto made = count(passed, "rondo::cross_entropy_backward");
    CHECK(made + count(passed, "aten::nll_loss_backward") == 1);
    return made == 1;
  };
  CHECK(is_fused());
  dim = -1;
  CHECK(is_fused());
  SUBCASE("a sum is another thing") {
    reduction = at::Reduction::Sum;
  }
  SUBCASE("so are classes of different weights") {
    has_weights = true;
  }
  SUBCASE("another one sees the gradient of the logarithms") {
    is_seen = true;
  }
  SUBCASE("an argument is another one by then") {
    changes = true;
  }
  SUBCASE("the logarithms are of columns") {
    dim = 0;
  }
  CHECK_FALSE(is_fused());
}

TEST_SUITE_END();
