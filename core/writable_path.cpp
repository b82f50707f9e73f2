#include "core/writable_path.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "core/error.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

/// \param path  relative to nothing: absolute, so that the root ends the search
void require_folder(const fs::path& path, const fs::path& wanted) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    if (::access(path.c_str(), W_OK | X_OK) != 0) {
      throw IoError(
          fmt::format("cannot write {}: in the folder {}", wanted.string(), path.string()), errno);
    }
    return;
  }
  if (fs::exists(fs::symlink_status(path, error))) {
    throw IoError(fmt::format("cannot write {}: {} is no folder", wanted.string(), path.string()),
                  0);
  }
  require_folder(path.parent_path(), wanted);
}

}  // namespace

void require_writable_file(const fs::path& path) {
  std::error_code error;
  const fs::path file = fs::absolute(path).lexically_normal();
  if (!file.has_filename() || fs::is_directory(file, error)) {
    throw IoError(fmt::format("cannot write {}: it is a folder", path.string()), 0);
  }
  if (!fs::exists(file, error)) {
    require_folder(file.parent_path(), path);
  } else if (::access(file.c_str(), W_OK) != 0) {
    throw IoError(fmt::format("cannot write {}", path.string()), errno);
  }
}

void require_writable_folder(const fs::path& path) {
  const fs::path folder = fs::absolute(path).lexically_normal();
  require_folder(folder.has_filename() ? folder : folder.parent_path(), path);
}

}  // namespace rondo
