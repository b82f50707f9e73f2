#include "checkpoint/temporary_files.h"

#include <optional>
#include <string>
#include <string_view>

#include "checkpoint/internal/file_lock.h"

namespace rondo {

namespace {

/// True for the names that `temporary_name` makes.
bool is_temporary(std::string_view name) {
  constexpr std::string_view kEnd = ".tmp";
  constexpr size_t kTail = 1 + 8 + kEnd.size();
  if (name.size() <= kTail || name.substr(name.size() - kEnd.size()) != kEnd) {
    return false;
  }
  const std::string_view tail = name.substr(name.size() - kTail);
  const std::string_view digits = tail.substr(1, 8);
  return tail[0] == '.' && digits.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

std::vector<std::filesystem::path> remove_stale_temporaries(
    FileSystem& files, const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> removed;
  for (const std::string& name : files.list(directory)) {
    const std::filesystem::path path = directory / name;
    if (!is_temporary(name)) {
      continue;
    }
    const std::optional<detail::FileLock> lock = detail::FileLock::try_existing(path);
    if (lock && files.remove(path)) {
      removed.push_back(path);
    }
  }
  return removed;
}

}  // namespace rondo
