#pragma once

#include <map>
#include <string>

namespace rondo {

/// The values of a TOML text by key path, such as "trainer.init.optimizer.AdamW.lr" -> "0.001";
/// elements of lists by component or label, or else by number; a list of plain values is one value.
/// Empty for a text that is no TOML.
std::map<std::string, std::string> config_keys(const std::string& toml);

}  // namespace rondo
