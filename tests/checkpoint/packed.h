#pragma once

#include <string>
#include <string_view>

#include "checkpoint/internal/compression.h"

namespace rondo::test {

/// The bytes, compressed.
inline std::string packed(detail::Compression compression, std::string_view bytes) {
  std::string result;
  const detail::Coder::Sink sink = [&result](const void* more, size_t size) {
    result.append(static_cast<const char*>(more), size);
  };
  const auto encoder = detail::make_encoder(compression);
  encoder->put(bytes.data(), bytes.size(), sink);
  encoder->finish(sink);
  return result;
}

}  // namespace rondo::test
