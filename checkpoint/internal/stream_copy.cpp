#include "checkpoint/internal/stream_copy.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace rondo::detail {

void stream_copy(char* to, const char* from, size_t bytes) {
  size_t done = 0;
#ifdef __SSE2__
  constexpr size_t kLine = 64;
  const size_t until_line = (kLine - reinterpret_cast<uintptr_t>(to) % kLine) % kLine;
  done = std::min(bytes, until_line);
  if (done > 0) {
    std::memcpy(to, from, done);
  }
  for (; done + kLine <= bytes; done += kLine) {
    for (size_t part = done; part < done + kLine; part += sizeof(__m128i)) {
      const auto* source = reinterpret_cast<const __m128i*>(from + part);
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + part), _mm_loadu_si128(source));
    }
  }
  _mm_sfence();
#endif
  if (done < bytes) {  // an empty tensor has no address
    std::memcpy(to + done, from + done, bytes - done);
  }
}

}  // namespace rondo::detail
