#include "data/text/token_windows.h"

#include <algorithm>

#include "core/require.h"
#include "data/batch_memory.h"
#include "data/internal/rows.h"

namespace rondo {

void check_windows(const std::string& component, int64_t context, std::optional<int64_t> stride) {
  detail::require(context >= 1, component + ": context", ">= 1", context);
  detail::require(stride.value_or(1) >= 1, component + ": stride", ">= 1", stride.value_or(1));
}

TokenWindows::TokenWindows(int64_t tokens, int64_t context, std::optional<int64_t> stride)
    : context_(context),
      stride_(stride.value_or(context)),
      size_(tokens > context ? (tokens - context - 1) / stride_ + 1 : 0) {}

template <class Token>
Batch TokenWindows::gather_windows(const Token* sequence,
                                   const std::vector<int64_t>& indices) const {
  const auto count = static_cast<int64_t>(indices.size());
  at::Tensor tokens = batch_tensor({count, context_}, at::kLong);
  at::Tensor targets = batch_tensor({count, context_}, at::kLong);
  auto* token = tokens.data_ptr<int64_t>();
  auto* target = targets.data_ptr<int64_t>();
  for (const int64_t index : indices) {
    detail::check_index(index, size_);
    const Token* window = sequence + index * stride_;
    token = std::copy(window, window + context_, token);
    target = std::copy(window + 1, window + 1 + context_, target);
  }
  return {{"tokens", tokens}, {"targets", targets}};
}

Batch TokenWindows::gather(const uint8_t* sequence, const std::vector<int64_t>& indices) const {
  return gather_windows(sequence, indices);
}

Batch TokenWindows::gather(const uint16_t* sequence, const std::vector<int64_t>& indices) const {
  return gather_windows(sequence, indices);
}

Batch TokenWindows::gather(const uint32_t* sequence, const std::vector<int64_t>& indices) const {
  return gather_windows(sequence, indices);
}

}  // namespace rondo
