#include "core/file_version.h"

#include <fmt/format.h>
#include <sys/stat.h>

namespace rondo {

std::string version_of_file(const std::filesystem::path& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) {
    return "";
  }
  return fmt::format(
      "{} bytes of {}.{:09}", status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
}

}  // namespace rondo
