#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/options.h"

namespace rondo {

/// How the numbers of a file that holds nothing else are to be read.
struct RawArray {
  /// "uint8", "int8", "int16", "int32", "int64", "float16", "float32" or "float64"; "" for none.
  std::string dtype = {};
  std::vector<int64_t> shape = {};  ///< of one row, sizes >= 1; [] of single numbers
  int64_t skip_bytes = 0;           ///< before the first row, such as a header, >= 0
  bool big_endian = false;
};

KeyTable<RawArray> raw_array_keys();

/// The rows of a file: as many as it has, the last one whole. They stay in the file, mapped, where
/// their bytes are those of a tensor; it must not change meanwhile.
/// \throws DataError   naming file and offset, when the file holds no whole number of rows
/// \throws UsageError  for options out of their range
at::Tensor read_raw(const std::filesystem::path& path, const RawArray& array);

}  // namespace rondo
