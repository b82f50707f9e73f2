#include "remote/credentials.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "core/error.h"
#include "core/home_path.h"

namespace rondo {

namespace {

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r");
  const size_t last = text.find_last_not_of(" \t\r");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

/// The keys of one section of an INI file; none where there is no file or section.
std::map<std::string, std::string> read_section(const std::filesystem::path& file,
                                                const std::string& section) {
  std::map<std::string, std::string> values;
  std::ifstream in(file);
  std::string line;
  bool is_inside = false;
  while (std::getline(in, line)) {
    line = trimmed(line);
    if (line.empty() || line.front() == '#' || line.front() == ';') {
      continue;
    }
    if (line.front() == '[') {
      is_inside = trimmed(line.substr(1, line.find(']') - 1)) == section;
      continue;
    }
    const size_t equals = line.find('=');
    if (is_inside && equals != std::string::npos) {
      values[trimmed(line.substr(0, equals))] = trimmed(line.substr(equals + 1));
    }
  }
  return values;
}

std::string profile_of(const Environment& environment) {
  return environment("AWS_PROFILE").value_or("default");
}

}  // namespace

Environment process_environment() {
  return [](const char* name) -> std::optional<std::string> {
    const char* const value = std::getenv(name);
    return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
  };
}

Credentials find_credentials(const Environment& environment) {
  const auto key = environment("AWS_ACCESS_KEY_ID");
  const auto secret = environment("AWS_SECRET_ACCESS_KEY");
  if (key && secret) {
    return {*key, *secret, environment("AWS_SESSION_TOKEN").value_or("")};
  }
  const std::string profile = profile_of(environment);
  const std::filesystem::path file =
      expand_home(environment("AWS_SHARED_CREDENTIALS_FILE").value_or("~/.aws/credentials"));
  auto values = read_section(file, profile);
  const Credentials found{
      values["aws_access_key_id"], values["aws_secret_access_key"], values["aws_session_token"]};
  if (found.access_key.empty() || found.secret_key.empty()) {
    throw UsageError(fmt::format(
        "there are no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write them "
        "into [{}] of {}",
        profile,
        file.string()));
  }
  return found;
}

std::optional<std::string> find_region(const Environment& environment) {
  for (const char* const name : {"AWS_REGION", "AWS_DEFAULT_REGION"}) {
    if (auto region = environment(name)) {
      return region;
    }
  }
  const std::string profile = profile_of(environment);
  const auto values =
      read_section(expand_home(environment("AWS_CONFIG_FILE").value_or("~/.aws/config")),
                   profile == "default" ? profile : "profile " + profile);
  const auto region = values.find("region");
  return region == values.end() ? std::nullopt : std::optional<std::string>(region->second);
}

}  // namespace rondo
