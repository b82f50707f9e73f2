#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/tensor_map.h"

namespace rondo {

/// \param component  for messages
/// \throws UsageError  when one of them is below 1
void check_windows(const std::string& component, int64_t context, std::optional<int64_t> stride);

/// Windows over a sequence of tokens, each with the tokens that follow its own: what a language
/// model learns from. Window i begins at token i * stride.
class TokenWindows {
 public:
  /// \param tokens   of the sequence
  /// \param context  tokens of a window, >= 1
  /// \param stride   from one window to the next, >= 1; none: `context`
  TokenWindows(int64_t tokens, int64_t context, std::optional<int64_t> stride);

  /// Whole windows, each with a token behind it; 0 when the sequence is too short for one.
  int64_t size() const { return size_; }

  /// "tokens" and "targets", int64 [B, context], of a sequence that lies in memory.
  Batch gather(const uint8_t* sequence, const std::vector<int64_t>& indices) const;
  Batch gather(const uint16_t* sequence, const std::vector<int64_t>& indices) const;
  Batch gather(const uint32_t* sequence, const std::vector<int64_t>& indices) const;

 private:
  template <class Token>
  Batch gather_windows(const Token* sequence, const std::vector<int64_t>& indices) const;

  int64_t context_;
  int64_t stride_;
  int64_t size_;
};

}  // namespace rondo
