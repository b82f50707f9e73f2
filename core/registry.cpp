#include "core/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace rondo::detail {

void read_then_check(const SourcePosition& at,
                     FaultSink& faults,
                     const std::function<void(FaultSink&)>& read,
                     const std::function<void()>& check) {
  std::vector<Fault> found;
  FaultSink sink("", found);
  read(sink);
  for (const Fault& fault : found) {
    FaultSink inside = fault.path.empty() ? faults : faults.inside(fault.path);
    inside.add(fault.position, fault.message);
  }
  if (!found.empty()) {
    return;
  }
  try {
    check();
  } catch (const UsageError& error) {
    faults.add(at, error.what());
  }
}

bool same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

std::string take_label(ConfigTable& keys, FaultSink& faults) {
  const ConfigEntry* entry = keys.find_entry("label");
  if (entry == nullptr) {
    return "";
  }
  const auto* text = entry->value.get_if<std::string>();
  std::string label = text != nullptr && is_label(*text) ? *text : "";
  if (label.empty()) {
    FaultSink inside = faults.inside("label");
    inside.add(entry->value.position(),
               fmt::format("expected a name of letters, digits, \"_\" and \"-\", got {}",
                           entry->value.to_text()));
  }
  keys.erase("label");
  return label;
}

const ConfigEntry* single_component(const ConfigValue& value,
                                    const std::string& family,
                                    FaultSink& faults) {
  const auto* table = value.get_if<ConfigTable>();
  if (table == nullptr || table->entries().size() != 1) {
    faults.add(
        value.position(),
        fmt::format(
            "expected a table with one key, the name of one {}, got {}", family, value.to_text()));
    return nullptr;
  }
  const ConfigEntry& entry = table->entries().front();
  const bool* on = entry.value.get_if<bool>();
  if (entry.value.get_if<ConfigTable>() == nullptr && (on == nullptr || !*on)) {
    faults.add(entry.value.position(),
               fmt::format("expected true or a table of the options of {}, got {}",
                           entry.key,
                           entry.value.to_text()));
    return nullptr;
  }
  return &entry;
}

}  // namespace rondo::detail
