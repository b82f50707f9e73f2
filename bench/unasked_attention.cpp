#include "unasked_attention.h"

#include <torch/torch.h>

#include <cmath>
#include <vector>

namespace bench {

namespace {

/// Query, key and value.
std::vector<at::Tensor> projected(const torch::nn::MultiheadAttentionImpl& attention,
                                  const at::Tensor& from,
                                  const at::Tensor& to) {
  const at::Tensor& weight = attention.in_proj_weight;
  const at::Tensor& bias = attention.in_proj_bias;
  if (from.is_same(to)) {
    return at::linear(from, weight, bias).chunk(3, -1);
  }
  const int64_t width = from.size(2);
  std::vector<at::Tensor> parts = {
      at::linear(from, weight.slice(0, 0, width), bias.slice(0, 0, width))};
  for (const at::Tensor& part :
       at::linear(to, weight.slice(0, width), bias.slice(0, width)).chunk(2, -1)) {
    parts.push_back(part);
  }
  return parts;
}

}  // namespace

at::Tensor attend_unasked(torch::nn::MultiheadAttentionImpl& attention,
                          const at::Tensor& from,
                          const at::Tensor& to,
                          const at::Tensor& mask) {
  const int64_t heads = attention.options.num_heads();
  const int64_t head_width = from.size(2) / heads;
  const auto by_head = [&](const at::Tensor& x) {
    return x.contiguous().view({-1, from.size(1) * heads, head_width}).transpose(0, 1);
  };
  const std::vector<at::Tensor> parts = projected(attention, from, to);
  const at::Tensor scaled = parts[0] * (1 / std::sqrt(head_width));
  const at::Tensor scores = at::bmm(by_head(scaled), by_head(parts[1]).transpose(1, 2));
  const at::Tensor weights = (mask.defined() ? scores + mask : scores).softmax(-1);
  const at::Tensor result =
      at::bmm(weights, by_head(parts[2])).transpose(0, 1).contiguous().view(from.sizes());
  return attention.out_proj->forward(result);
}

}  // namespace bench
