#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <string>

namespace rondo {

/// Whether a file is read as HDF5, by its name: .h5, .hdf5, .he5, and .nc, as NetCDF-4 files are
/// HDF5 files.
bool is_hdf5(const std::filesystem::path& path);

/// A variable of a file, "group/name", as a tensor of its own memory. Numbers of every width and
/// byte order become those of a tensor; unsigned ones the next wider integers, uint64 an int64.
/// One call at a time: HDF5 has threads take turns.
/// \param name    "" where the file has one variable alone
/// \param unpack  the attributes _FillValue, missing_value, scale_factor and add_offset hold, as
/// the
///                CF conventions say: fill values become NaN, packed numbers scale * number +
///                offset. Both are float32, or float64 of integers of 32 bits and more. Integers
///                without either stay
/// \throws DataError  naming the file: a variable that is not there with those that are, texts and
///                    records, more numbers than the file can hold, damage
at::Tensor read_hdf5(const std::filesystem::path& path,
                     const std::string& name,
                     bool unpack = true);

}  // namespace rondo
