#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rondo::detail {

/// Where a tensor lies in a safetensors file.
struct SafetensorsEntry {
  std::string name;
  c10::ScalarType type = c10::ScalarType::Float;
  std::vector<int64_t> shape;
  uint64_t begin = 0;  ///< offsets from the first byte after the header
  uint64_t end = 0;
};

/// The header as JSON, filled up with spaces to a multiple of 8 bytes.
/// \throws Malformed  naming an entry whose dtype the format does not have
std::string make_safetensors_header(const std::vector<SafetensorsEntry>& entries);

/// Reads a header: entries in the order of their bytes. `__metadata__` is passed over.
/// \throws Malformed  when it is no such JSON, an entry's size does not follow from its shape, or
///                    the entries do not cover `data_size` bytes without gap and overlap
std::vector<SafetensorsEntry> read_safetensors_header(std::string_view json, uint64_t data_size);

}  // namespace rondo::detail
