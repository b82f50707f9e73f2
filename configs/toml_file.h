#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/config_value.h"

namespace rondo {

/// Reads a TOML file into a tree that knows where everything stands.
/// \throws ConfigError  naming file, line and column of what is no TOML, of a value that configs do
///                      not have (a date or a time of day), or of nesting deeper than 64; or when
///                      the file has more than 1 MiB
/// \throws IoError      when the file cannot be read
ConfigValue read_toml_file(const std::filesystem::path& path);

/// The same for a text; `file` is what positions name.
ConfigValue parse_toml(std::string_view text, const std::string& file);

/// A TOML document of this table, with a `[section]` for each nested table. It reads back as an
/// equal tree, but for the order of keys: those of a table come before its nested tables.
std::string write_toml(const ConfigTable& table);

}  // namespace rondo
