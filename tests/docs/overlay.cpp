#include "docs/overlay.h"

#include <algorithm>
#include <string>

namespace rondo::test {

namespace {

bool has_any(const ConfigTable& table, std::initializer_list<const char*> keys) {
  return std::any_of(
      keys.begin(), keys.end(), [&](const char* key) { return table.find(key) != nullptr; });
}

/// Whether the table at a key stands for the whole of what was there.
bool replaces(const std::string& key, const ConfigTable& over) {
  return key == "optimizer" || key == "step" || has_any(over, {"name", "dataset"});
}

void erase_lengths(ConfigTable& loop) {
  for (const char* length : {"max_steps", "num_steps", "num_epochs", "max_duration"}) {
    loop.erase(length);
  }
}

}  // namespace

void overlay(ConfigTable& table, const ConfigTable& over) {
  if (has_any(over, {"max_steps", "num_steps", "num_epochs", "max_duration"})) {
    erase_lengths(table);
  }
  for (const ConfigEntry& entry : over.entries()) {
    ConfigValue* const below = table.find(entry.key);
    const ConfigTable* const inner = entry.value.get_if<ConfigTable>();
    if (below != nullptr && inner != nullptr && below->get_if<ConfigTable>() != nullptr &&
        !replaces(entry.key, *inner)) {
      overlay(*below->get_if<ConfigTable>(), *inner);
    } else {
      table.set(entry.key, entry.value, entry.key_position);
    }
  }
}

}  // namespace rondo::test
