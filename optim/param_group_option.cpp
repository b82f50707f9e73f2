#include "optim/param_group_option.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/glob.h"
#include "core/option_types.h"

namespace rondo {

namespace {

using Globs = OptionType<std::vector<std::string>>;

/// Whether a group may have it, whatever the optimizer's numbers.
bool is_of_any_group(const std::string& key) {
  return key == "adjust_learning_rate" || key == "max_dims";
}

}  // namespace

std::optional<std::vector<ParamGroupOptions>> ParamGroupListOption::read(const ConfigValue& value,
                                                                         FaultSink& faults) const {
  const auto* array = value.get_if<ConfigArray>();
  if (array == nullptr) {
    return detail::mismatch(value, name(), faults);
  }
  std::vector<ParamGroupOptions> groups;
  for (size_t i = 0; i < array->size(); ++i) {
    FaultSink inside = faults.inside(fmt::format("[{}]", i));
    groups.push_back(read_group((*array)[i], inside));
  }
  return groups;
}

ParamGroupOptions ParamGroupListOption::read_group(const ConfigValue& value,
                                                   FaultSink& faults) const {
  ParamGroupOptions group;
  const auto* table = value.get_if<ConfigTable>();
  if (table == nullptr) {
    detail::mismatch(value, "a table", faults);
    return group;
  }
  for (const ConfigEntry& entry : table->entries()) {
    FaultSink inside = faults.inside(entry.key);
    if (entry.key == "params") {
      group.params = Globs::read(entry.value, inside).value_or(std::vector<std::string>());
    } else if (entry.key == "tag") {
      group.tag = OptionType<std::string>::read(entry.value, inside).value_or("");
    } else if (is_of_any_group(entry.key) ||
               std::find(numbers_.begin(), numbers_.end(), entry.key) != numbers_.end()) {
      group.numbers.emplace_back(entry.key, detail::read_number(entry.value, inside).value_or(0.0));
    } else {
      std::vector<std::string> known = numbers_;
      known.insert(known.end(), {"params", "tag", "adjust_learning_rate", "max_dims"});
      faults.add(entry.key_position,
                 fmt::format("unknown key \"{}\"{}", entry.key, suggestion(entry.key, known)));
    }
  }
  if (table->find("params") == nullptr) {
    faults.add(value.position(), "missing key \"params\": expected " + Globs::name());
  }
  return group;
}

ConfigValue ParamGroupListOption::write(const std::vector<ParamGroupOptions>& groups) const {
  ConfigArray array;
  for (const ParamGroupOptions& group : groups) {
    ConfigTable table;
    table.set("params", Globs::write(group.params));
    if (!group.tag.empty()) {
      table.set("tag", ConfigValue(group.tag));
    }
    for (const auto& number : group.numbers) {
      table.set(number.first, ConfigValue(number.second));
    }
    array.emplace_back(std::move(table));
  }
  return ConfigValue(std::move(array));
}

}  // namespace rondo
