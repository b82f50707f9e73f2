#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace rondo::test {

/// What is in a file; "" where there is none.
inline std::string content(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace rondo::test
