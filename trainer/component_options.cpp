#include "trainer/component_options.h"

#include <fmt/format.h>

#include <utility>

namespace rondo {

namespace {

/// Algorithms of Composer that have another place in a run file.
const char* line_for(const std::string& algorithm) {
  static const std::map<std::string, const char*> kPlaces = {
      {"EMA", "callbacks = [{ AverageWeights = { kind = \"ema\", half_life = \"1000ba\" } }]"},
      {"SWA",
       "callbacks = [{ AverageWeights = { kind = \"swa\", start = \"0.7dur\", every = \"1ep\" } "
       "}]"},
      {"SAM", "step = { Sam = { rho = 0.05 } }"},
      {"Alibi", "positions = \"alibi\" of the model Gpt"},
      {"GatedLinearUnits", "activation = \"swiglu\" of the model Gpt"},
  };
  const auto found = kPlaces.find(algorithm);
  return found == kPlaces.end() ? nullptr : found->second;
}

}  // namespace

std::optional<std::vector<Factory<Algorithm>>> AlgorithmsOption::read(const ConfigValue& value,
                                                                      FaultSink& faults) const {
  const auto* array = value.get_if<ConfigArray>();
  if (array == nullptr) {
    return detail::mismatch(value, name(), faults);
  }
  ConfigArray known;
  for (const ConfigValue& element : *array) {
    const auto* table = element.get_if<ConfigTable>();
    const bool is_single = table != nullptr && table->entries().size() == 1;
    const ConfigEntry* const entry = is_single ? &table->entries().front() : nullptr;
    const char* const line = entry != nullptr ? line_for(entry->key) : nullptr;
    if (line == nullptr || registry_->find(entry->key) != nullptr) {
      known.push_back(element);
    } else {
      faults.add(entry->key_position,
                 fmt::format("{} is no algorithm here; write {}", entry->key, line));
    }
  }
  return list_.read(ConfigValue(std::move(known), value.position()), faults);
}

}  // namespace rondo
