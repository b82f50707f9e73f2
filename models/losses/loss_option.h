#pragma once

#include <optional>
#include <string>

#include "core/registry.h"
#include "models/losses/criterion.h"

namespace rondo {

/// A model's option that names its loss: `{ Focal = { gamma = 2 } }`, or the name alone.
class LossOption {
 public:
  /// \param registry  outlives the key table: both belong to one set of registries
  explicit LossOption(const Registry<Criterion>& registry)
      : registry_(&registry), table_(registry) {}

  std::string name() const { return "the name of a loss or " + table_.name(); }

  std::optional<Factory<Criterion>> read(const ConfigValue& value, FaultSink& faults) const {
    const auto* word = value.get_if<std::string>();
    if (word == nullptr) {
      return table_.read(value, faults);
    }
    Factory<Criterion> named = registry_->read_named(*word, value.position(), {}, faults);
    return named ? std::optional<Factory<Criterion>>(std::move(named)) : std::nullopt;
  }

  ConfigValue write(const Factory<Criterion>& factory) const { return table_.write(factory); }

 private:
  const Registry<Criterion>* registry_;
  ComponentOption<Criterion> table_;
};

}  // namespace rondo
