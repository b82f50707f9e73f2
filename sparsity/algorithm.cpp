#include "sparsity/algorithm.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/accumulate.h>

namespace rondo {

namespace {

constexpr auto kGolden = static_cast<int64_t>(0x9e3779b97f4a7c15ULL);  // 2^64 / golden ratio
constexpr auto kFirstFactor = static_cast<int64_t>(0xbf58476d1ce4e5b9ULL);
constexpr auto kSecondFactor = static_cast<int64_t>(0x94d049bb133111ebULL);

/// As of unsigned numbers: the shift of int64 repeats the sign.
at::Tensor shifted(const at::Tensor& bits, int64_t by) {
  return bits.bitwise_right_shift(by).bitwise_and((int64_t{1} << (64 - by)) - 1);
}

}  // namespace

at::Tensor top_mask(const at::Tensor& scores, const at::Tensor& count) {
  const at::Tensor order =
      at::argsort(scores.flatten(), /*stable=*/true, /*dim=*/0, /*descending=*/true);
  const at::Tensor places = at::arange(order.numel(), order.options());
  const at::Tensor rank = at::zeros_like(order).scatter(0, order, places);
  return rank.lt(count).view(scores.sizes());
}

at::Tensor keyed_uniform(const at::Tensor& key, at::IntArrayRef sizes) {
  const at::Tensor places = at::arange(1, c10::multiply_integers(sizes) + 1, key.options());
  at::Tensor bits = places.mul(kGolden).add(key);
  bits = bits.bitwise_xor(shifted(bits, 30)).mul(kFirstFactor);
  bits = bits.bitwise_xor(shifted(bits, 27)).mul(kSecondFactor);
  bits = bits.bitwise_xor(shifted(bits, 31));
  return shifted(bits, 11).to(at::kDouble).mul(0x1.0p-53).view(sizes);
}

}  // namespace rondo
