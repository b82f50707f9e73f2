#pragma once

#include <filesystem>
#include <string>

namespace rondo::detail {

/// The content of a file, unpacked when it is gzipped.
/// \throws IoError    when it cannot be opened or read
/// \throws DataError  when its gzip stream is damaged or ends early; names file and offset
std::string read_data_file(const std::filesystem::path& path);

}  // namespace rondo::detail
