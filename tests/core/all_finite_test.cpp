#include "core/all_finite.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <limits>

using namespace rondo;

TEST_SUITE_BEGIN("core/all_finite");

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

constexpr at::ScalarType kFloats[] = {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16};

}  // namespace

TEST_CASE("one NaN or infinity is found wherever it is, in each floating-point type") {
  for (const at::ScalarType type : kFloats) {
    for (const int64_t size : {1, 7, 4096, 10000}) {
      CAPTURE(size);
      const at::Tensor values = torch::full({size}, 6e4, type);
      CHECK(all_finite(values));
      CHECK(all_finite(-values));
      for (const double bad : {kInfinity, -kInfinity, kNan, -kNan}) {
        for (const int64_t place : {int64_t{0}, size / 2, size - 1}) {
          at::Tensor spoiled = values.clone();
          spoiled[place] = bad;
          CHECK_FALSE(all_finite(spoiled));
        }
      }
    }
  }
}

TEST_CASE("views are judged by their own elements") {
  const at::Tensor values = torch::zeros({4, 4});
  values[1][2] = kInfinity;
  CHECK_FALSE(all_finite(values.t()));
  CHECK_FALSE(all_finite(values.select(1, 2)));
  CHECK(all_finite(values.select(1, 1)));
  CHECK(all_finite(values[0]));
}

TEST_CASE("complex numbers have two parts, integers and empty tensors are finite") {
  const at::Tensor values = torch::zeros({3}, at::kComplexFloat);
  CHECK(all_finite(values));
  at::view_as_real(values)[2][1] = kNan;
  CHECK_FALSE(all_finite(values));
  CHECK(all_finite(torch::full({3}, std::numeric_limits<int64_t>::max(), at::kLong)));
  CHECK(all_finite(torch::ones({3}, at::kBool)));
  CHECK(all_finite(torch::empty({0})));
}

TEST_SUITE_END();
