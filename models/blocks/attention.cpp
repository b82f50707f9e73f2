#include "models/blocks/attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/exp2.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>

#include <cmath>
#include <limits>

namespace rondo::detail {

namespace {

/// 2^(-8/n), 2^(-16/n) … of n heads. Where n is no power of two, those of the power below it, and
/// every second one of the power above it.
at::Tensor slopes_of(int64_t heads, const at::TensorOptions& options) {
  int64_t power = 1;
  while (2 * power <= heads) {
    power *= 2;
  }
  const double step = -8.0 / static_cast<double>(power);
  const at::Tensor whole = at::arange(1, power + 1, options) * step;
  const at::Tensor between = (at::arange(1, heads - power + 1, options) - 0.5) * step;
  return at::exp2(at::cat({whole, between}));
}

}  // namespace

at::Tensor attend(const at::Tensor& query,
                  const at::Tensor& key,
                  const at::Tensor& value,
                  const at::Tensor& mask,
                  double dropout) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(query.size(3)));
  at::Tensor scores = at::matmul(query * scale, key.transpose(-2, -1));
  if (mask.defined()) {
    scores = mask.scalar_type() == at::kBool
                 ? scores.masked_fill(mask, -std::numeric_limits<double>::infinity())
                 : scores + mask;
  }
  const at::Tensor weights = at::dropout(scores.softmax(-1), dropout, /*train=*/dropout > 0);
  const at::Tensor heads = at::matmul(weights, value);
  return heads.transpose(1, 2).reshape({query.size(0), query.size(2), -1});
}

at::Tensor repeat_heads(const at::Tensor& x, int64_t times) {
  if (times == 1) {
    return x;
  }
  const int64_t heads = x.size(1);
  return x.unsqueeze(2)
      .expand({x.size(0), heads, times, x.size(2), x.size(3)})
      .reshape({x.size(0), heads * times, x.size(2), x.size(3)});
}

at::Tensor linear_biases(int64_t heads, int64_t first, int64_t tokens, const at::Tensor& like) {
  const auto numbers = at::TensorOptions().dtype(at::kFloat).device(like.device());
  const at::Tensor queries = at::arange(first, first + tokens, numbers).unsqueeze(1);
  const at::Tensor distance = at::arange(first + tokens, numbers) - queries;
  return distance.masked_fill(distance.gt(0), -std::numeric_limits<double>::infinity())
      .mul(slopes_of(heads, numbers).view({-1, 1, 1}))
      .to(like.scalar_type());
}

at::Tensor rotate(const at::Tensor& x, int64_t first, double base) {
  const int64_t half = x.size(3) / 2;
  const auto numbers = x.options().dtype(at::kFloat);
  const at::Tensor speed =
      (at::arange(half, numbers) * (-std::log(base) / static_cast<double>(half))).exp();
  const at::Tensor positions = at::arange(first, first + x.size(2), numbers);
  const at::Tensor angles = positions.unsqueeze(1) * speed;  // [T, d/2]
  const at::Tensor cosine = angles.cos().to(x.scalar_type());
  const at::Tensor sine = angles.sin().to(x.scalar_type());
  const at::Tensor a = x.narrow(3, 0, half);
  const at::Tensor b = x.narrow(3, half, half);
  return at::cat({a * cosine - b * sine, b * cosine + a * sine}, 3);
}

}  // namespace rondo::detail
