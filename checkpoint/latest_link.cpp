#include "checkpoint/latest_link.h"

#include <cerrno>

#include "core/error.h"
#include "core/glob.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

/// \return false on a file system without links
bool make_link(FileSystem& files, const fs::path& target, const fs::path& link) {
  try {
    files.symlink(target, link);
    return true;
  } catch (const IoError& error) {
    if (error.error_number == EPERM || error.error_number == ENOTSUP) {
      return false;
    }
    throw;
  }
}

}  // namespace

void update_latest_link(FileSystem& files, const fs::path& checkpoint) {
  const fs::path link = checkpoint.parent_path() / "latest";
  for (int attempt = 1;; ++attempt) {
    const fs::path temporary = temporary_name(link);
    if (!make_link(files, checkpoint.filename(), temporary)) {
      return;
    }
    try {
      files.rename(temporary, link);
      return;
    } catch (const IoError& error) {
      constexpr int kAttempts = 10;
      if (error.error_number != ENOENT || attempt == kAttempts) {
        files.remove(temporary);
        throw;
      }  // a process that started took the link for a leftover
    }
  }
}

void remove_stale_latest_links(FileSystem& files, const fs::path& directory) {
  for (const std::string& name : files.list(directory)) {
    const fs::path path = directory / name;
    if (glob_match("latest.????????.tmp", name) && fs::is_symlink(path)) {
      files.remove(path);
    }
  }
}

}  // namespace rondo
