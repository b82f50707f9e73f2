#pragma once

#include <filesystem>

#include "core/file_system.h"

namespace rondo {

/// Lets the link `latest` beside a checkpoint lead to it, relatively and in one step: at any
/// instant there is the old link or the new one. Nothing on a file system without links. \throws
/// IoError
void update_latest_link(FileSystem& files, const std::filesystem::path& checkpoint);

/// Removes the links `latest.{8 hex}.tmp` that a run which died may have left in a directory.
/// \throws IoError
void remove_stale_latest_links(FileSystem& files, const std::filesystem::path& directory);

}  // namespace rondo
