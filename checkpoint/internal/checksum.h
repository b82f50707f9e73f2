#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>

namespace rondo::detail {

/// The CRC-32 of zip, of `before`'s bytes followed by these.
inline uint32_t checksum(const void* bytes, size_t size, uint32_t before = 0) {
  // With a null pointer, as that of an empty tensor, zlib would start anew.
  return size == 0 ? before
                   : static_cast<uint32_t>(
                         ::crc32_z(before, static_cast<const unsigned char*>(bytes), size));
}

/// The checksum of two pieces laid end to end, from the checksum of each.
inline uint32_t joined_checksum(uint32_t first, uint32_t second, uint64_t second_size) {
  return static_cast<uint32_t>(::crc32_combine(first, second, static_cast<z_off_t>(second_size)));
}

}  // namespace rondo::detail
