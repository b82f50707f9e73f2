#include "core/secret_option.h"

#include <fmt/format.h>

#include <cstdlib>

#include "core/error.h"

namespace rondo {

std::string secret_option(const std::string& option, const std::string& value) {
  constexpr const char* kPrefix = "env:";
  if (value.rfind(kPrefix, 0) != 0) {
    return value;
  }
  const std::string name = value.substr(4);
  const char* const found = std::getenv(name.c_str());
  if (found == nullptr || *found == '\0') {
    throw UsageError(fmt::format(
        "{} is \"{}\", but the environment variable {} is not set", option, value, name));
  }
  return found;
}

}  // namespace rondo
