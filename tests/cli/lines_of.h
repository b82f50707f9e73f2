#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace rondo::test {

/// The lines of a file; none where there is no such file.
inline std::vector<std::string> lines_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

}  // namespace rondo::test
