#pragma once

#include <filesystem>
#include <string_view>

#include "core/tensor_map.h"

namespace rondo {

/// Reads a .npy file of NumPy, format 1 to 3: {"": array}, or the fields of a structured array by
/// name, each with the records as its first dimensions. Arrays of numbers that a tensor can hold as
/// they are stay in the file, which is mapped; such a file must not change meanwhile, and nobody
/// may write the tensor. What is stored in Fortran's order, with the other byte order, or as
/// records is copied. Unsigned numbers get the next wider integer type; uint64 gets int64.
/// Source: NumPy, numpy/lib/format.py, "Format Version 1.0".
/// \throws DataError  naming file and offset: no such header, a type that no tensor has (texts,
///                    dates, objects), fewer or more bytes than the header says, a uint64 above
///                    int64's largest
/// \throws IoError    when it cannot be opened
TensorMap read_npy(const std::filesystem::path& path);

/// Reads an archive of such files, as numpy.savez and savez_compressed write it: each array under
/// its name, the fields of a structured one as "name/field".
/// \throws DataError  as above, and for a damaged archive, or one with anything but .npy files
/// \throws IoError    when it cannot be opened
TensorMap read_npz(const std::filesystem::path& path);

/// The same of bytes in memory, which are copied.
/// \param name  for messages
/// @{
TensorMap read_npy_bytes(const std::filesystem::path& name, std::string_view bytes);
TensorMap read_npz_bytes(const std::filesystem::path& name, std::string_view bytes);
/// @}

}  // namespace rondo
