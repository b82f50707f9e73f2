#include "backends/operator_precision.h"

#include <ATen/autocast_mode.h>
#include <doctest/doctest.h>
#include <torch/nn/functional/loss.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <string>

#include "core/error.h"
#include "core/state_dict.h"
#include "core/torch_compat.h"

using namespace rondo;

namespace {

OperatorPrecision emulated(std::vector<std::string> in_float32 = {}) {
  OperatorPrecision precision;
  precision.emulates_float16 = true;
  precision.in_float32 = std::move(in_float32);
  return precision;
}

at::Tensor rounded(const at::Tensor& x) {
  return x.to(at::kHalf).to(at::kFloat);
}

at::Tensor numbers(at::IntArrayRef sizes, uint64_t seed) {
  torch::manual_seed(seed);
  return torch::randn(sizes);
}

/// bfloat16 autocast on the CPU while it lives.
struct Autocast {
  Autocast() {
    compat::set_autocast(c10::kCPU, true);
    compat::set_autocast_dtype(c10::kCPU, at::kBFloat16);
  }

  ~Autocast() {
    compat::set_autocast(c10::kCPU, false);
    at::autocast::clear_cache();
  }
};

}  // namespace

TEST_SUITE_BEGIN("backends/operator_precision");

TEST_CASE("emulated float16 rounds the result of each operator") {
  const at::Tensor a = numbers({5, 7}, 1);
  const at::Tensor b = numbers({7, 3}, 2);
  const at::Tensor exact = at::mm(a, b);
  const OperatorPrecision precision = emulated();
  at::Tensor found;
  {
    const OperatorPrecisionScope scope(precision);
    found = at::mm(a, b).add(1.0);
  }
  CHECK(equal_bytes(found, rounded(rounded(exact).add(1.0))));
  CHECK(equal_bytes(at::mm(a, b), exact));  // outside
}

TEST_CASE("emulated float16 rounds the parts of a composite operator") {
  const at::Tensor x = numbers({4, 6}, 1);
  const at::Tensor weight = numbers({3, 6}, 2);
  const OperatorPrecision precision = emulated();
  const OperatorPrecisionScope scope(precision);
  const at::Tensor found = at::linear(x, weight);
  CHECK(equal_bytes(found, rounded(found)));
}

TEST_CASE("gradients are rounded on their way back, so that they overflow and vanish") {
  const at::Tensor x = torch::ones({3}).requires_grad_();
  const OperatorPrecision precision = emulated();
  at::Tensor loss;
  {
    const OperatorPrecisionScope scope(precision);
    loss = (x * 2.0).sum();
  }
  (loss * 1e5).backward();
  CHECK(x.grad().isinf().all().item<bool>());
  x.mutable_grad().reset();
  {
    const OperatorPrecisionScope scope(precision);
    loss = (x * 2.0).sum();
  }
  (loss * 1e-9).backward();
  CHECK(at::equal(x.grad(), at::zeros({3})));
}

TEST_CASE("numbers, integers, views and what is written in place stay as they are") {
  const OperatorPrecision precision = emulated();
  const at::Tensor x = torch::full({2, 2}, 1.0F + 1e-6F);
  const OperatorPrecisionScope scope(precision);
  CHECK(x.t().data_ptr() == x.data_ptr());
  CHECK(at::equal(x.t(), x));
  CHECK(x.sum().item<float>() > 4.0F);
  const at::Tensor count = torch::tensor({100000, 3});
  CHECK((count + 1)[0].item<int64_t>() == 100001);
  const at::Tensor wide = torch::full({2}, 1.0 + 1e-9, at::kDouble);
  CHECK((wide * 1.0)[0].item<double>() == 1.0 + 1e-9);
}

TEST_CASE("listed operators are left in float32 as a whole") {
  const at::Tensor logits = numbers({4, 6}, 1);
  const at::Tensor exact = at::log_softmax(logits, 1);
  const OperatorPrecision precision = emulated({"log_soft*"});
  const OperatorPrecisionScope scope(precision);
  CHECK(equal_bytes(at::log_softmax(logits, 1), exact));
}

TEST_CASE("a listed operator computes in float32 under autocast, which others do not") {
  const at::Tensor a = numbers({5, 7}, 1);
  const at::Tensor b = numbers({7, 3}, 2);
  const at::Tensor exact = at::mm(a, b);
  OperatorPrecision precision;
  precision.in_float32 = {"mm"};
  const Autocast autocast;
  CHECK((at::mm(a, b).scalar_type() == at::kBFloat16));
  const OperatorPrecisionScope scope(precision);
  CHECK(equal_bytes(at::mm(a, b), exact));
  CHECK((at::addmm(at::ones({3}), a, b).scalar_type() == at::kBFloat16));
}

TEST_CASE("its narrow arguments are widened, and its result is rounded where that is asked for") {
  const at::Tensor x = numbers({4, 6}, 1).to(at::kBFloat16);
  OperatorPrecision precision;
  precision.in_float32 = {"softmax", "*_loss"};
  {
    const OperatorPrecisionScope scope(precision);
    CHECK((at::softmax(x, 1).scalar_type() == at::kFloat));
  }
  precision.rounded_to = at::kBFloat16;
  const OperatorPrecisionScope scope(precision);
  CHECK(equal_bytes(at::softmax(x, 1), at::softmax(x.to(at::kFloat), 1).to(at::kBFloat16)));
  CHECK((at::softmax(x.to(at::kFloat), 1).scalar_type() == at::kFloat));
  const at::Tensor label = torch::zeros({4}, at::kLong);
  CHECK((at::cross_entropy_loss(x, label).scalar_type() == at::kFloat));
}

TEST_CASE("scopes nest, and each ends with the one around it in force") {
  const at::Tensor x = numbers({8}, 1);
  const OperatorPrecision outer = emulated();
  const OperatorPrecision inner;
  const OperatorPrecisionScope rounds(outer);
  {
    const OperatorPrecisionScope plain(inner);
    CHECK(equal_bytes(x * 3.0, x.mul(3.0)));
    CHECK(!equal_bytes(x * 3.0, (x * 3.0).to(at::kHalf).to(at::kFloat)));
  }
  const at::Tensor found = x * 3.0;
  CHECK(equal_bytes(found, rounded(found)));
}

TEST_CASE("a name that no operator has is an error that names it and a near one") {
  CHECK_NOTHROW(check_operator_names({"softmax", "*_loss", "layer_norm"}));
  CHECK_NOTHROW(check_operator_names(operators_best_in_float32()));
  try {
    check_operator_names({"softmax", "sofmax"});
    FAIL("no error");
  } catch (const UsageError& error) {
    const std::string message = error.what();
    CHECK(message.find("\"sofmax\"") != std::string::npos);
    CHECK(message.find("\"softmax\"") != std::string::npos);
  }
}

TEST_SUITE_END();
