#include "board/run_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <deque>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

#include "core/error.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

constexpr size_t kMostFolders = 10000;

/// Entries of a folder by name, the last first; none when it cannot be read.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end;
       !error && it != end && names.size() < kMostFolders;
       it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  std::sort(names.rbegin(), names.rend());
  return names;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  return text;
}

}  // namespace

std::optional<fs::path> file_of_run(const fs::path& directory, const std::string& path) {
  const fs::path relative(path);
  const bool leaves = relative.is_absolute() || path.find('\0') != std::string::npos ||
                      std::find(relative.begin(), relative.end(), "..") != relative.end();
  if (path.empty() || leaves) {
    return std::nullopt;
  }
  std::error_code error;
  const fs::path root = fs::canonical(directory, error);
  const fs::path file = error ? fs::path() : fs::canonical(root / relative, error);
  if (error || !fs::is_regular_file(file, error)) {
    return std::nullopt;
  }
  const auto [in_root, in_file] = std::mismatch(root.begin(), root.end(), file.begin(), file.end());
  return in_root == root.end() && in_file != file.end() ? std::optional(file) : std::nullopt;
}

std::string bytes_of_file(const fs::path& file) {
  constexpr uintmax_t kMost = 64 << 20;
  std::error_code error;
  if (fs::file_size(file, error) > kMost || error) {
    throw DataError(fmt::format("{}: cannot be read, or has more than 64 MiB", file.string()));
  }
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream bytes;
  bytes << stream.rdbuf();
  if (!stream) {
    throw DataError(fmt::format("{}: cannot be read", file.string()));
  }
  return std::move(bytes).str();
}

std::string newest_steps_folder(const fs::path& directory) {
  for (const std::string& stamp : names_in(directory / "logs")) {
    std::error_code error;
    const std::string folder = "logs/" + stamp + "/steps";
    if (stamp != "latest" && fs::is_directory(directory / folder, error)) {
      return folder;
    }
  }
  return "";
}

std::vector<std::string> steps_of_run(const fs::path& directory) {
  const std::string folder = newest_steps_folder(directory);
  std::vector<std::string> steps;
  if (folder.empty()) {
    return steps;
  }
  for (const std::string& name : names_in(directory / folder)) {
    const fs::path stem = fs::path(name).stem();
    if (fs::path(name).extension() == ".json" && stem.extension() != ".trace") {
      steps.push_back(fs::path(name).stem().string());
    }
  }
  std::reverse(steps.begin(), steps.end());
  return steps;
}

std::optional<fs::path> file_of_step(const fs::path& directory,
                                     const std::string& key,
                                     const std::string& part) {
  const std::vector<std::string> known = steps_of_run(directory);
  if (std::find(known.begin(), known.end(), key) == known.end()) {
    return std::nullopt;
  }
  const fs::path steps = newest_steps_folder(directory);
  if (part == "timeline") {
    const fs::path profile = steps.parent_path() / "profile" / (key + ".json");
    const std::optional<fs::path> file = file_of_run(directory, profile.string());
    return file ? file : file_of_run(directory, (steps / (key + ".trace.json")).string());
  }
  return file_of_run(directory, (steps / (key + (part == "program" ? ".txt" : ".json"))).string());
}

std::vector<std::string> tables_of_run(const fs::path& directory) {
  std::vector<std::string> tables;
  std::vector<std::string> candidates = {"validate_all.csv"};
  for (const std::string& stamp : names_in(directory / "logs")) {
    if (stamp != "latest") {
      candidates.push_back("logs/" + stamp + "/validate_all.csv");
    }
  }
  for (const std::string& candidate : candidates) {
    if (file_of_run(directory, candidate)) {
      tables.push_back(candidate);
    }
  }
  return tables;
}

FoundLines lines_with(const fs::path& file, const std::string& text, size_t most) {
  std::ifstream stream(file, std::ios::binary);
  const std::string wanted = lower(text);
  std::deque<std::string> last;
  FoundLines found;
  for (std::string line; std::getline(stream, line);) {
    if (!wanted.empty() && lower(line).find(wanted) == std::string::npos) {
      continue;
    }
    ++found.count;
    last.push_back(std::move(line));
    if (last.size() > most) {
      last.pop_front();
    }
  }
  found.last.assign(std::make_move_iterator(last.begin()), std::make_move_iterator(last.end()));
  return found;
}

}  // namespace rondo
