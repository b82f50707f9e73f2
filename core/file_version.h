#pragma once

#include <filesystem>
#include <string>

namespace rondo {

/// What a file is told by from an earlier or later one of that path: its size and the time of its
/// last change. "" when there is none.
std::string version_of_file(const std::filesystem::path& path);

}  // namespace rondo
