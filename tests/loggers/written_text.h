#pragma once

#include <filesystem>
#include <string>

#include "core/file_system.h"

namespace rondo::test {

/// What a logger wrote into a file, which must be there.
inline std::string written_text(const std::filesystem::path& path) {
  return real_file_system()->read(path);
}

}  // namespace rondo::test
