#include "core/all_finite.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>

namespace rondo {

namespace {

/// Not finite is what has every bit of the exponent set. Blocks of a fixed size become vector
/// instructions.
template <class Word, Word kExponent>
bool words_are_finite(const void* data, int64_t count) {
  constexpr int64_t kBlock = 4096;
  const auto* words = static_cast<const Word*>(data);
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    Word found = 0;
    const int64_t size = std::min(kBlock, count - begin);
    for (int64_t i = 0; i < size; ++i) {
      found |= static_cast<Word>((words[begin + i] & kExponent) == kExponent);
    }
    if (found != 0) {
      return false;
    }
  }
  return true;
}

bool dense_is_finite(const at::Tensor& tensor) {
  const void* data = tensor.data_ptr();
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return words_are_finite<uint32_t, 0x7F800000U>(data, tensor.numel());
    case at::kDouble:
      return words_are_finite<uint64_t, 0x7FF0000000000000U>(data, tensor.numel());
    case at::kHalf:
      return words_are_finite<uint16_t, 0x7C00U>(data, tensor.numel());
    case at::kBFloat16:
      return words_are_finite<uint16_t, 0x7F80U>(data, tensor.numel());
    default:
      return tensor.isfinite().all().item<bool>();
  }
}

}  // namespace

bool all_finite(const at::Tensor& tensor) {
  if (tensor.is_complex()) {
    return all_finite(at::view_as_real(tensor.detach().resolve_conj()));
  }
  if (!tensor.is_floating_point() || tensor.numel() == 0) {
    return true;
  }
  const bool is_dense = tensor.device().is_cpu() && tensor.layout() == at::kStrided &&
                        tensor.is_non_overlapping_and_dense();
  return is_dense ? dense_is_finite(tensor) : tensor.detach().isfinite().all().item<bool>();
}

}  // namespace rondo
