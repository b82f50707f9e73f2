#include "data/data_files.h"

#include <zlib.h>

#include <cstdlib>
#include <exception>
#include <fstream>
#include <utility>

#include "core/error.h"

namespace rondo::test {

void write_file(const std::filesystem::path& path, std::string_view bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

void write_gzip(const std::filesystem::path& path, std::string_view bytes) {
  std::filesystem::create_directories(path.parent_path());
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
}

std::string idx_bytes(const std::vector<uint32_t>& shape, std::string_view values) {
  std::string bytes{'\0', '\0', '\x08', static_cast<char>(shape.size())};
  for (const uint32_t size : shape) {
    for (int shift = 24; shift >= 0; shift -= 8) {
      bytes.push_back(static_cast<char>(size >> shift & 0xff));
    }
  }
  return bytes + std::string(values);
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (...) {
    return describe(std::current_exception());
  }
  return "";
}

ScopedEnvironment::ScopedEnvironment(std::string name, const char* value) : name_(std::move(name)) {
  if (const char* old = std::getenv(name_.c_str())) {
    old_ = old;
  }
  value != nullptr ? setenv(name_.c_str(), value, 1) : unsetenv(name_.c_str());
}

ScopedEnvironment::~ScopedEnvironment() {
  old_ ? setenv(name_.c_str(), old_->c_str(), 1) : unsetenv(name_.c_str());
}

std::optional<std::filesystem::path> public_data(const std::string& folder) {
  const char* environment = std::getenv("RONDO_DATA");
  const std::filesystem::path root =
      environment != nullptr ? environment : RONDO_SOURCE_DIR "/../shared/data";
  return std::filesystem::is_directory(root / folder) ? std::optional(root / folder) : std::nullopt;
}

}  // namespace rondo::test
