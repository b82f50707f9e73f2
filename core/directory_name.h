#pragma once

#include <filesystem>
#include <string>

namespace rondo {

/// The last name in the path, also of "a/" and ".".
inline std::string directory_name(const std::filesystem::path& directory) {
  const std::filesystem::path path = std::filesystem::absolute(directory).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

}  // namespace rondo
