#include "core/home_path.h"

#include <cstdlib>
#include <string>

namespace rondo {

std::filesystem::path expand_home(const std::filesystem::path& path) {
  const std::string& text = path.native();
  const bool is_below_home = text == "~" || text.compare(0, 2, "~/") == 0;
  const char* home = is_below_home ? std::getenv("HOME") : nullptr;
  if (home == nullptr || *home == '\0') {
    return path;
  }
  return std::filesystem::path(home + text.substr(1));
}

}  // namespace rondo
