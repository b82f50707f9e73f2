#include "tracing/checks/tensor_summary.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <limits>
#include <string>

TEST_SUITE_BEGIN("tracing/checks/tensor_summary");

using namespace rondo;

TEST_CASE("a range is that of the finite elements") {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const TensorSummary summary = summary_of("x", torch::tensor({2.0F, nan, -inf, -3.5F, nan}));
  REQUIRE(summary.range);
  CHECK(summary.range->min == -3.5);
  CHECK(summary.range->max == 2.0);
  CHECK(summary.count == 5);
  CHECK(summary.nans == 2);
  CHECK(summary.infs == 1);
}

TEST_CASE("a tensor without finite elements has no range") {
  for (const at::Tensor& tensor :
       {torch::full({3, 2}, std::numeric_limits<double>::quiet_NaN()), torch::empty({0, 4})}) {
    const TensorSummary summary = summary_of("x", tensor);
    CHECK_FALSE(summary.range);
    CHECK(to_text(summary).find("min") == std::string::npos);
  }
}

TEST_CASE("a label out of range shows") {
  const TensorSummary labels = summary_of("label", torch::tensor({3, 11, 0}, torch::kLong));
  REQUIRE(labels.range);
  CHECK(labels.range->min == 0.0);
  CHECK(labels.range->max == 11.0);
  CHECK(labels.is_finite());
}

TEST_SUITE_END();
