#pragma once

#include <filesystem>

namespace rondo {

/// "~" and "~/…" with the user's home directory in its place, as a shell does it; any other path as
/// it is, also where there is no home directory.
std::filesystem::path expand_home(const std::filesystem::path& path);

}  // namespace rondo
