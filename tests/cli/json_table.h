#pragma once

#include <string>

#include "core/config_value.h"

namespace rondo::test {

/// An object of JSON without null or `": ` in texts, read as the inline table of TOML that it is
/// but for its colons.
ConfigTable table_of(const std::string& json);

/// The table under a key; fails the test when there is none.
const ConfigTable& table(const ConfigTable& in, const char* key);

/// The number under a key; fails the test when there is none.
double number(const ConfigTable& in, const char* key);

}  // namespace rondo::test
