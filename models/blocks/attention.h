#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace rondo::detail {

/// Scaled dot-product attention of each head: softmax(q · kᵀ / sqrt(d)) · v.
/// \param query  [B, heads, T, d]
/// \param key    [B, heads, S, d], as `value`
/// \param mask   bool [T, S], true where a query must not look; floating [heads, T, S]: what is
///               added to the scores; undefined: it looks everywhere
/// \param dropout  share of the attention's weights; 0 outside of training
/// \return [B, T, heads · d]
/// Source: Vaswani et al. 2017, arXiv:1706.03762, section 3.2.
at::Tensor attend(const at::Tensor& query,
                  const at::Tensor& key,
                  const at::Tensor& value,
                  const at::Tensor& mask,
                  double dropout);

/// Repeats each head so many times in a row: [B, heads · times, T, d].
at::Tensor repeat_heads(const at::Tensor& x, int64_t times);

/// What linear biases add to the scores of `tokens` that follow `first` others: the slope of a head
/// times the distance to where it looks, and -inf where that comes later.
/// \return [heads, tokens, first + tokens], of the type of `like`
/// Source: Press et al. 2021, arXiv:2108.12409, section 3; slopes as in its code.
at::Tensor linear_biases(int64_t heads, int64_t first, int64_t tokens, const at::Tensor& like);

/// Turns the pairs (i, i + d/2) of each head by angles that grow with the position.
/// \param x      [B, heads, T, d], d even
/// \param first  position of its first token
/// \param base   10,000 in the paper: the slowest pair turns once in about 2π · base tokens
/// Source: Su et al. 2021, arXiv:2104.09864; the pairs as GPT-NeoX and Llama have them.
at::Tensor rotate(const at::Tensor& x, int64_t first, double base);

}  // namespace rondo::detail
