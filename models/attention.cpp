#include "models/internal/attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>

#include <cmath>
#include <limits>

namespace rondo::detail {

at::Tensor attend(const at::Tensor& query,
                  const at::Tensor& key,
                  const at::Tensor& value,
                  const at::Tensor& mask,
                  double dropout) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(query.size(3)));
  at::Tensor scores = at::matmul(query * scale, key.transpose(-2, -1));
  if (mask.defined()) {
    scores = scores.masked_fill(mask, -std::numeric_limits<double>::infinity());
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
