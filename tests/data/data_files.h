#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/contains.h"

namespace rondo::test {

void write_file(const std::filesystem::path& path, std::string_view bytes);
void write_gzip(const std::filesystem::path& path, std::string_view bytes);

/// An idx file of unsigned bytes with these dimensions.
std::string idx_bytes(const std::vector<uint32_t>& shape, std::string_view values);

/// The messages of what `call` throws, outermost first; "" when it throws nothing.
std::string message_of(const std::function<void()>& call);

/// Sets an environment variable, or removes it, and puts the old value back.
class ScopedEnvironment {
 public:
  ScopedEnvironment(std::string name, const char* value);
  ScopedEnvironment(const ScopedEnvironment&) = delete;
  ScopedEnvironment& operator=(const ScopedEnvironment&) = delete;
  ~ScopedEnvironment();

 private:
  std::string name_;
  std::optional<std::string> old_;
};

/// A folder of public data beside the repository or in RONDO_DATA, where there is one.
std::optional<std::filesystem::path> public_data(const std::string& folder);

}  // namespace rondo::test
