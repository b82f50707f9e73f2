#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/config_value.h"

namespace rondo {

/// Reads a TOML file into a tree that keeps the position of every value.
/// \throws ConfigError  for invalid TOML, a value that configs do not support (a date or a time of
///                      day) or nesting deeper than 64, naming file, line and column; or when the
///                      file is larger than 1 MiB
/// \throws IoError      when the file cannot be read
ConfigValue read_toml_file(const std::filesystem::path& path);

/// The same for a text; positions name `file`.
ConfigValue parse_toml(std::string_view text, const std::string& file);

/// A TOML document of this table, with a `[section]` for each nested table. Reading it gives an
/// equal tree, except for the order of keys: those of a table come before its nested tables.
std::string write_toml(const ConfigTable& table);

}  // namespace rondo
