#pragma once

#include <filesystem>

namespace rondo {

/// Finds out early that a file cannot be written: one that is there, or one that is to be made in
/// folders that may have to be made too. Makes nothing.
/// \throws IoError  naming the file and what stands in its way
void require_writable_file(const std::filesystem::path& path);

/// The same for a folder that files are to be made in.
void require_writable_folder(const std::filesystem::path& path);

}  // namespace rondo
