#include "tracing/checks/equal_numbers.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <limits>

#include "core/state_dict.h"

using namespace rondo;

TEST_SUITE_BEGIN("tracing/checks/equal_numbers");

TEST_CASE("numbers are compared by their bytes, but a NaN equals each NaN") {
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16}) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const at::Tensor values = torch::tensor({0.0, nan, 2.0}).to(type);
    // A cast to bfloat16 makes one NaN of all.
    CHECK(equal_bytes(values, torch::tensor({0.0, -nan, 2.0}).to(type)) == (type == at::kBFloat16));
    CHECK(equal_numbers(values, torch::tensor({0.0, -nan, 2.0}).to(type)));
    CHECK_FALSE(equal_numbers(values, torch::tensor({-0.0, -nan, 2.0}).to(type)));
    CHECK_FALSE(equal_numbers(values, torch::tensor({0.0, 1.0, 2.0}).to(type)));
    CHECK_FALSE(equal_numbers(values, torch::tensor({nan, -nan, 2.0}).to(type)));
    CHECK_FALSE(equal_numbers(values, torch::tensor({0.0, -nan}).to(type)));
  }
  CHECK_FALSE(equal_numbers(torch::ones({2}), torch::ones({2}, at::kDouble)));
  CHECK_FALSE(equal_numbers(torch::ones({2}, at::kInt), torch::zeros({2}, at::kInt)));
  CHECK(equal_numbers(at::Tensor(), at::Tensor()));
  CHECK_FALSE(equal_numbers(at::Tensor(), torch::ones({2})));
}

TEST_SUITE_END();
