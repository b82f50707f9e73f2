#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace rondo::detail {

/// How one kind of number is stored, and what it becomes.
struct NpyType {
  c10::ScalarType tensor = c10::ScalarType::Float;  ///< that it is read as
  size_t bytes = 0;                                 ///< of one, in the file
  bool is_unsigned = false;                         ///< wider than one byte: the tensor is wider
  bool is_swapped = false;                          ///< big-endian
};

/// A field of a record.
struct NpyField {
  std::string name;  ///< "" of an array that is not structured
  NpyType type;
  std::vector<int64_t> shape;  ///< of one record's field
  size_t offset = 0;           ///< in a record
  int64_t elements = 1;        ///< of one record's field
};

struct NpyHeader {
  std::vector<NpyField> fields;  ///< one without a name, or those of a structured array
  std::vector<int64_t> shape;    ///< of the array
  bool is_fortran = false;
  size_t record = 0;  ///< bytes
  int64_t records = 1;
  size_t data = 0;  ///< offset of the first record
};

/// Reads the header of a .npy file, and checks what it promises against the file's size.
/// \param path   for messages
/// \param bytes  of the whole file
/// \throws DataError  naming file and offset
NpyHeader read_npy_header(const std::filesystem::path& path, std::string_view bytes);

}  // namespace rondo::detail
