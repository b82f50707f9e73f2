#include "data/data_dir.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <system_error>

#include "core/error.h"
#include "core/glob.h"
#include "core/home_path.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

/// The directories to look into, with what named them.
struct Places {
  std::vector<fs::path> directories;
  std::string origin;
};

Places places_of(const std::optional<fs::path>& data_dir, const DataFile& file) {
  Places places;
  if (data_dir && !data_dir->empty()) {
    places = {{*data_dir}, "data_dir"};
  } else if (const fs::path directory = default_data_dir(); !directory.empty()) {
    places = {{directory}, "RONDO_DATA"};
  }
  if (!places.directories.empty() && !file.folder.empty()) {
    places.directories.push_back(places.directories.front() / file.folder);
  }
  return places;
}

bool is_file(const fs::path& path) {
  std::error_code error;  // an unreadable directory holds no data file
  return fs::exists(path, error) && !fs::is_directory(path, error);
}

[[noreturn]] void throw_missing(const Places& places,
                                const std::vector<fs::path>& tried,
                                const DataFile& file) {
  std::string message =
      fmt::format("{}: cannot find {}; ", file.what, fmt::join(file.names, " or "));
  if (tried.empty()) {
    message += "no directory to look in was given";
  } else {
    std::vector<std::string> paths;
    for (const fs::path& path : tried) {
      paths.push_back(path.string());
    }
    message += fmt::format("there is no {}", fmt::join(paths, ", "));
    message += places.origin.empty() ? "" : " (from " + places.origin + ")";
  }
  message +=
      ". Set data_dir of this loader in the config or on the command line (such as "
      "trainer.fit.train_dataloader.data_dir=DIR), or the environment variable RONDO_DATA for all "
      "loaders, to the directory that holds it";
  message += file.folder.empty() ? "" : fmt::format(" or holds the folder {}", file.folder);
  message += file.source.empty() ? "" : ". Get it from " + file.source;
  throw DataError(message);
}

/// The files of the pattern's folder whose names match its last part, by name.
std::vector<fs::path> matching_files(const fs::path& pattern) {
  std::vector<fs::path> found;
  std::error_code error;  // a folder that is not there holds no file
  const fs::path folder = pattern.has_parent_path() ? pattern.parent_path() : fs::path(".");
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (glob_match(pattern.filename().string(), entry.path().filename().string()) &&
        is_file(entry.path())) {
      found.push_back(entry.path());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// Where the names of a file can be, most wanted first.
std::vector<fs::path> candidates(const Places& places, const DataFile& file) {
  std::vector<fs::path> paths;
  for (const std::string& given : file.names) {
    const fs::path name = expand_home(given);
    if (name.is_absolute()) {
      paths.push_back(name);
      continue;
    }
    for (const fs::path& directory : places.directories) {
      paths.push_back(directory / name);
    }
  }
  return paths;
}

}  // namespace

fs::path default_data_dir() {
  const char* directory = std::getenv("RONDO_DATA");
  return directory != nullptr ? expand_home(directory) : fs::path();
}

fs::path find_data_file(const std::optional<fs::path>& data_dir, const DataFile& file) {
  const Places places = places_of(data_dir, file);
  const std::vector<fs::path> tried = candidates(places, file);
  for (const fs::path& path : tried) {
    if (is_file(path)) {
      return path;
    }
  }
  throw_missing(places, tried, file);
}

std::vector<fs::path> find_data_files(const std::optional<fs::path>& data_dir,
                                      const DataFile& file) {
  const Places places = places_of(data_dir, file);
  const std::vector<fs::path> tried = candidates(places, file);
  for (const fs::path& path : tried) {
    if (is_file(path)) {
      return {path};
    }
    if (std::vector<fs::path> found = matching_files(path); !found.empty()) {
      return found;
    }
  }
  throw_missing(places, tried, file);
}

}  // namespace rondo
